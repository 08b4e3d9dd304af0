// SPDX-License-Identifier: Apache-2.0
#include "pjrt/errors.h"

#include <string>

namespace tpu::pjrt {
namespace {

ErrorKind KindOf(PJRT_Error_Code code) {
  switch (code) {
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return ErrorKind::kOutOfMemory;
    case PJRT_Error_Code_UNIMPLEMENTED:
      return ErrorKind::kNotImplemented;
    default:
      return ErrorKind::kRuntime;
  }
}

}  // namespace

Status ConsumeError(const PJRT_Api* api, PJRT_Error* error) {
  Args<PJRT_Error_Message_Args> message;
  message->error = error;
  api->PJRT_Error_Message(message.get());

  Args<PJRT_Error_GetCode_Args> code;
  code->error = error;
  PJRT_Error_Code value = PJRT_Error_Code_UNKNOWN;
  if (PJRT_Error* nested = api->PJRT_Error_GetCode(code.get())) {
    Args<PJRT_Error_Destroy_Args> destroy_nested;
    destroy_nested->error = nested;
    api->PJRT_Error_Destroy(destroy_nested.get());
  } else {
    value = code->code;
  }

  Status status(KindOf(value), std::string(message->message, message->message_size));
  Args<PJRT_Error_Destroy_Args> destroy;
  destroy->error = error;
  api->PJRT_Error_Destroy(destroy.get());
  return status;
}

}  // namespace tpu::pjrt
