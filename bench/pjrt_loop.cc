// SPDX-License-Identifier: Apache-2.0
// Runs StableHLO texts through PJRT and nothing else: the reference of the kernel rows (bench/kernels.py). The plugin, its
// client and its compile options are those of the package. Started with the plugin's path; then one command a line on stdin,
// one answer a line on stdout ("ok ..." or "error ..."):
//   argument NAME DTYPE DIMS FILE   an input from raw bytes; DIMS like 64x64, or "scalar"
//   program NAME FILE ARGUMENT...   compiles a text
//   run NAME CALLS                  launches, waits for the last result, answers with the nanoseconds
//   output NAME FILE                writes the first result of one launch as raw bytes
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pjrt/client.h"
#include "pjrt/plugin.h"

namespace tpu::bench {
namespace {

using pjrt::Buffer;
using pjrt::HostBufferSemantics;

struct Argument {
  std::string bytes;
  Buffer buffer;
};

struct Program {
  pjrt::LoadedExecutable executable;
  std::vector<PJRT_Buffer*> arguments;
};

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return RuntimeError("cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

DType ParseDType(const std::string& name) {
  for (int i = 0; i < static_cast<int>(DType::kInvalid); ++i)
    if (name == HloName(static_cast<DType>(i))) return static_cast<DType>(i);
  return DType::kInvalid;
}

class Loop {
 public:
  explicit Loop(pjrt::Client* client) : client_(client) {}

  Result<std::string> Do(std::istringstream& line) {
    std::string command;
    line >> command;
    if (command == "argument") return AddArgument(line);
    if (command == "program") return AddProgram(line);
    if (command == "run") return Run(line);
    if (command == "output") return Output(line);
    return RuntimeError("unknown command " + command);
  }

 private:
  Result<std::string> AddArgument(std::istringstream& line) {
    std::string name, dtype, dims, file;
    line >> name >> dtype >> dims >> file;
    TensorType type(ParseDType(dtype), {});
    std::istringstream sizes(dims == "scalar" ? "" : dims);
    for (std::string size; std::getline(sizes, size, 'x');) type.Append(std::stoll(size));
    auto bytes = ReadFile(file);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() != type.bytes()) return RuntimeError("wrong size of " + file);
    Argument& argument = arguments_[name];
    argument.bytes = std::move(*bytes);
    auto buffer = client_->BufferFromHost(argument.bytes.data(), type, 0, HostBufferSemantics::kImmutableOnlyDuringCall);
    if (!buffer.ok()) return buffer.status();
    argument.buffer = std::move(*buffer);
    return std::string();
  }

  Result<std::string> AddProgram(std::istringstream& line) {
    std::string name, file;
    line >> name >> file;
    auto text = ReadFile(file);
    if (!text.ok()) return text.status();
    auto executable = client_->Compile(*text, client_->DefaultCompileOptions());
    if (!executable.ok()) return executable.status();
    Program& program = programs_[name];
    program.executable = std::move(*executable);
    for (std::string argument; line >> argument;) {
      auto found = arguments_.find(argument);
      if (found == arguments_.end()) return RuntimeError("no argument " + argument);
      program.arguments.push_back(found->second.buffer.get());
    }
    return std::string();
  }

  Result<Program*> Find(const std::string& name) {
    auto found = programs_.find(name);
    if (found == programs_.end()) return RuntimeError("no program " + name);
    return &found->second;
  }

  // Launches once; the first result. The others are dropped.
  Result<Buffer> Launch(const Program& program) {
    std::vector<PJRT_Buffer*> outs(program.executable.num_outputs());
    Status status = program.executable.Execute(program.arguments.data(), program.arguments.size(), nullptr, 0,
                                               client_->devices()[0].device, outs.data());
    if (!status.ok()) return status;
    for (size_t i = 1; i < outs.size(); ++i) pjrt::Destroy(client_->api(), outs[i]);
    return Buffer(client_->api(), outs[0]);
  }

  // As the caller of an idle machine would: look first, sleep late.
  static Status Await(const Buffer& buffer) {
    Status error;
    for (int i = 0; !buffer.IsReady(&error); ++i)
      if (i > 1000) std::this_thread::yield();
    return error;
  }

  Result<std::string> Run(std::istringstream& line) {
    std::string name;
    int64_t calls = 0;
    line >> name >> calls;
    auto program = Find(name);
    if (!program.ok()) return program.status();
    auto start = std::chrono::steady_clock::now();
    Buffer last;
    for (int64_t i = 0; i < calls; ++i) {
      auto buffer = Launch(**program);
      if (!buffer.ok()) return buffer.status();
      last = std::move(*buffer);
    }
    TPU_RETURN_IF_ERROR(Await(last));
    auto spent = std::chrono::steady_clock::now() - start;
    return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }

  Result<std::string> Output(std::istringstream& line) {
    std::string name, file;
    line >> name >> file;
    auto program = Find(name);
    if (!program.ok()) return program.status();
    auto buffer = Launch(**program);
    if (!buffer.ok()) return buffer.status();
    TPU_RETURN_IF_ERROR(Await(*buffer));
    auto pointer = buffer->HostPointer();
    if (!pointer.ok()) return pointer.status();
    size_t bytes = (*program)->executable.output_types()[0].bytes();
    std::ofstream(file, std::ios::binary).write(static_cast<const char*>(*pointer), static_cast<std::streamsize>(bytes));
    return std::string();
  }

  pjrt::Client* client_;
  std::map<std::string, Argument> arguments_;
  std::map<std::string, Program> programs_;
};

int Main(const std::string& path) {
  auto plugin = pjrt::Plugin::Load(path);
  if (!plugin.ok()) return std::cout << "error " << plugin.status().message() << std::endl, 1;
  auto client = pjrt::Client::Create(*plugin, {});
  if (!client.ok()) return std::cout << "error " << client.status().message() << std::endl, 1;
  std::cout << "ok " << (*client)->profile().name << std::endl;
  Loop loop(*client);
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    auto answer = loop.Do(line);
    std::string message = answer.ok() ? *answer : answer.status().message();
    for (char& c : message)
      if (c == '\n') c = ' ';
    std::cout << (answer.ok() ? "ok " : "error ") << message << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace tpu::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pjrt_loop PLUGIN\n";
    return 2;
  }
  return tpu::bench::Main(argv[1]);
}
