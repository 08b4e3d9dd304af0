// SPDX-License-Identifier: Apache-2.0
// GetPjrtApi: the table, and what happens on the way into each function.
#include "api.h"

#include "control_state.h"
#include "objects.h"

namespace fake_pjrt {

Error CheckStructSize(const char* name, size_t expected, size_t actual) {
  if (actual >= expected) return {};
  return Invalid("Unexpected " + std::string(name) + " size: expected " + std::to_string(expected) + ", got " +
                 std::to_string(actual) + ". The plugin is likely built with a later version than the framework.");
}

namespace {

template <class Args>
Error Enter(const char* name, const Args* args, size_t expected, bool fallible) {
  if (Error e = ControlState::Get().OnCall(name, fallible); !e.ok()) return e;
  return CheckStructSize((std::string(name) + "_Args").c_str(), expected, args->struct_size);
}

void ErrorDestroy(PJRT_Error_Destroy_Args* args) {
  ControlState::Get().OnCall("PJRT_Error_Destroy", false).ok();
  delete args->error;
}

void ErrorMessage(PJRT_Error_Message_Args* args) {
  ControlState::Get().OnCall("PJRT_Error_Message", false).ok();
  args->message = args->error->error.message.c_str();
  args->message_size = args->error->error.message.size();
}

PJRT_Error* ErrorGetCode(PJRT_Error_GetCode_Args* args) {
  ControlState::Get().OnCall("PJRT_Error_GetCode", false).ok();
  args->code = static_cast<PJRT_Error_Code>(args->error->error.code);
  return nullptr;
}

PJRT_Api MakeApi() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Destroy = ErrorDestroy;
  api.PJRT_Error_Message = ErrorMessage;
  api.PJRT_Error_GetCode = ErrorGetCode;
#define ROW(name, fallible, call)                                                   \
  api.PJRT_##name = [](PJRT_##name##_Args* args) -> PJRT_Error* {                   \
    Error e = Enter("PJRT_" #name, args, PJRT_##name##_Args_STRUCT_SIZE, fallible); \
    return NewError(e.ok() ? call : e);                                             \
  };
#define FALLIBLE(name) ROW(name, true, name(args))
#define DESTROY(name) ROW(name, false, name(args))
#define MISSING(name) ROW(name, true, (Error{kUnimplemented, "PJRT_" #name " is not implemented by the fake plugin"}))
  FAKE_PJRT_FUNCTIONS(FALLIBLE, DESTROY, MISSING)
#undef MISSING
#undef DESTROY
#undef FALLIBLE
#undef ROW
  return api;
}

}  // namespace
}  // namespace fake_pjrt

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = fake_pjrt::MakeApi();
  return &api;
}
