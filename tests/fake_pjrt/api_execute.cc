// SPDX-License-Identifier: Apache-2.0
// Execution and donation.
#include <algorithm>
#include <cstring>
#include <set>

#include "api.h"
#include "interpreter.h"
#include "objects.h"
#include "worker.h"

namespace fake_pjrt {
namespace {

// One program on one device.
struct Launch {
  std::shared_ptr<const Program> program;
  PJRT_Device* device = nullptr;
  std::vector<std::shared_ptr<Memory>> inputs, outputs;
  std::vector<std::shared_ptr<Promise>> inputs_ready;
  std::shared_ptr<Promise> done = std::make_shared<Promise>();
  Error injected;

  Error Run() const {
    for (const auto& ready : inputs_ready)
      if (Error e = ready->Wait(); !e.ok()) return e;
    if (!injected.ok()) return injected;
    const Function& main = program->module->main();
    std::vector<Tensor> args, results;
    for (size_t i = 0; i < inputs.size(); ++i) args.push_back({main.arg_types[i], inputs[i]});
    if (Error e = Interpreter(*program->module).Run(main, args, &results); !e.ok()) return e;
    // A result may be an argument whose memory another output has taken over: copy such results aside first.
    for (Tensor& r : results)
      if (std::find(inputs.begin(), inputs.end(), r.memory) != inputs.end()) {
        Tensor aside = Tensor::Empty(r.type);
        std::memcpy(aside.bytes(), r.bytes(), r.type.bytes());
        r = aside;
      }
    for (size_t i = 0; i < results.size(); ++i) std::memcpy(outputs[i]->data(), results[i].bytes(), results[i].type.bytes());
    return {};
  }
};

Error CheckDevices(const PJRT_LoadedExecutable& executable, const PJRT_LoadedExecutable_Execute_Args& args,
                   std::vector<PJRT_Device*>* devices) {
  *devices = executable.devices;
  if (args.execute_device) {
    if (args.num_devices != 1) return Invalid("Execute with a device given takes one argument list");
    if (!executable.program->portable && !(devices->size() == 1 && (*devices)[0] == args.execute_device))
      return Invalid("Execute on a device that the executable was not compiled for (it is not portable)");
    *devices = {args.execute_device};
  }
  if (devices->empty()) return Invalid("Execute of a portable executable needs execute_device");
  if (devices->size() != args.num_devices)
    return Invalid("Attempted to execute with " + std::to_string(args.num_devices) +
                   " argument lists when local device count is " + std::to_string(devices->size()));
  return {};
}

// Checks the arguments of one device and takes their memory, but changes nothing. `donated` gets true for each argument
// that the program aliases and the caller allows.
Error TakeArguments(PJRT_Buffer* const* buffers, size_t count, const std::set<int64_t>& not_donatable, Launch* launch,
                    std::vector<bool>* donated) {
  const Program& p = *launch->program;
  const Function& main = p.module->main();
  if (count != main.arg_types.size())
    return Invalid("Execution supplied " + std::to_string(count) + " buffers but compiled program expected " +
                   std::to_string(main.arg_types.size()) + " buffers");
  for (size_t i = 0; i < count; ++i) {
    PJRT_Buffer* b = buffers[i];
    std::string which = "argument " + std::to_string(i);
    if (!b) return Invalid(which + " is null");
    if (!(b->type == main.arg_types[i]))
      return Invalid(which + " is " + b->type.ToString() + ", the program takes " + main.arg_types[i].ToString());
    if (b->device != launch->device)
      return Invalid(which + " is on " + b->device->description.text + ", the program runs on " +
                     launch->device->description.text);
    std::lock_guard lock(b->mutex);
    if (!b->memory) return Invalid(which + ": Buffer has been deleted or donated.");
    launch->inputs.push_back(b->memory);
    launch->inputs_ready.push_back(b->ready);
    donated->push_back(p.alias[i] >= 0 && !not_donatable.count(static_cast<int64_t>(i)));
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (i != j && (*donated)[i] && buffers[i] == buffers[j])
        return Invalid("Attempt to donate the same buffer twice in Execute() (arguments " + std::to_string(i) + " and " +
                       std::to_string(j) + ")");
  return {};
}

// The memory of each output: that of a donated argument where possible, else fresh.
Error TakeOutputs(PJRT_Buffer* const* buffers, const std::vector<bool>& donated, Launch* launch) {
  const Function& main = launch->program->module->main();
  launch->outputs.resize(main.result_types.size());
  for (size_t i = 0; i < donated.size(); ++i) {
    std::lock_guard lock(buffers[i]->mutex);
    // As XLA:CPU: held or read-only memory is donated in name only.
    if (donated[i] && launch->inputs[i]->writable() && buffers[i]->external_references == 0)
      launch->outputs[launch->program->alias[i]] = launch->inputs[i];
  }
  bool asynchronous = ControlState::Get().delay_us >= 0 || launch->device->client->asynchronous;
  for (size_t k = 0; k < launch->outputs.size(); ++k) {
    if (launch->outputs[k]) continue;
    size_t bytes = main.result_types[k].bytes();
    launch->outputs[k] = Memory::AllocateCounted(bytes);
    if (!launch->outputs[k]) return {kResourceExhausted, "Out of memory allocating " + std::to_string(bytes) + " bytes"};
    if (asynchronous) std::memset(launch->outputs[k]->data(), 0xFD, bytes);
  }
  return {};
}

}  // namespace

Error ExecuteContext_Create(PJRT_ExecuteContext_Create_Args* args) {
  args->context = new PJRT_ExecuteContext;
  return {};
}

Error ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args* args) {
  delete args->context;
  return {};
}

Error LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* args) {
  const PJRT_LoadedExecutable& executable = *args->executable;
  if (!args->options) return Invalid("no execute options");
  if (Error e = CheckStructSize("PJRT_ExecuteOptions", PJRT_ExecuteOptions_STRUCT_SIZE, args->options->struct_size); !e.ok())
    return e;
  if (executable.deleted) return Invalid("Execute of a deleted executable");
  if (!executable.program->not_executed.empty())
    return {kUnimplemented, "the fake plugin does not execute " + executable.program->not_executed};
  std::vector<PJRT_Device*> devices;
  if (Error e = CheckDevices(executable, *args, &devices); !e.ok()) return e;
  std::set<int64_t> not_donatable(args->options->non_donatable_input_indices,
                                  args->options->non_donatable_input_indices + args->options->num_non_donatable_input_indices);
  std::vector<std::shared_ptr<Launch>> launches;
  std::vector<std::vector<bool>> donated(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    launches.push_back(std::make_shared<Launch>());
    launches[d]->program = executable.program;
    launches[d]->device = devices[d];
    PJRT_Buffer* const* buffers = args->num_args ? args->argument_lists[d] : nullptr;
    if (Error e = TakeArguments(buffers, args->num_args, not_donatable, launches[d].get(), &donated[d]); !e.ok()) return e;
    if (Error e = TakeOutputs(buffers, donated[d], launches[d].get()); !e.ok()) return e;
  }
  // Nothing can fail from here on before the program runs.
  Error injected = ControlState::Get().OnExecute();
  const Function& main = executable.program->module->main();
  for (size_t d = 0; d < devices.size(); ++d) {
    for (size_t i = 0; i < args->num_args; ++i) {
      if (!donated[d][i]) continue;
      std::lock_guard lock(args->argument_lists[d][i]->mutex);
      args->argument_lists[d][i]->memory.reset();
    }
    std::shared_ptr<Launch> launch = launches[d];
    launch->injected = injected;
    for (size_t k = 0; k < launch->outputs.size(); ++k)
      args->output_lists[d][k] = new PJRT_Buffer(main.result_types[k], devices[d], launch->outputs[k], launch->done);
    if (args->device_complete_events) args->device_complete_events[d] = NewEvent(launch->done);
    Worker::Get().RunOrSubmit(executable.client->asynchronous, [launch] {
      Error e = launch->Run();
      launch->inputs.clear();
      launch->outputs.clear();
      launch->done->Set(std::move(e));
    });
  }
  return {};
}

}  // namespace fake_pjrt
