# SPDX-License-Identifier: Apache-2.0
# Finds what installed Python wheels carry. Nothing is imported, so that configuring stays quick and a CUDA build of torch
# does not ask for a CUDA toolkit (find_package(Torch) would).

function(tpu_find_wheel_dir module out)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; s = u.find_spec('${module}'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

# pjrt::headers, and TPU_XLA_CPU_PJRT: the path of the CPU plugin, for tests.
function(tpu_find_pjrt)
  # The wheel has no __init__ at the top, so the package itself is asked for.
  tpu_find_wheel_dir(xla_plugins.xla_cpu_pjrt dir)
  if(NOT EXISTS "${dir}/include/pjrt_c_api.h")
    message(FATAL_ERROR "pjrt_c_api.h not found: install the package xla-cpu-pjrt for ${Python_EXECUTABLE}")
  endif()
  add_library(pjrt_headers INTERFACE)
  add_library(pjrt::headers ALIAS pjrt_headers)
  target_include_directories(pjrt_headers SYSTEM INTERFACE "${dir}/include")
  set(TPU_XLA_CPU_PJRT "${dir}/xla_cpu_pjrt.so" PARENT_SCOPE)
endfunction()

# torch::cpu (torch, torch_cpu, c10) and torch::python (torch_python on top of it, for the bindings alone).
function(tpu_find_torch)
  tpu_find_wheel_dir(torch dir)
  if(NOT EXISTS "${dir}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "torch not found: install torch 2.13 for ${Python_EXECUTABLE} first")
  endif()
  file(STRINGS "${dir}/version.py" line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+" version "${line}")
  if(NOT version STREQUAL "2.13")
    message(FATAL_ERROR "torch ${version} is installed, this source tree builds against torch 2.13")
  endif()
  file(STRINGS "${dir}/share/cmake/Torch/TorchConfig.cmake" old_abi REGEX "GLIBCXX_USE_CXX11_ABI=0")
  if(old_abi)
    message(FATAL_ERROR "this torch was built with the old C++ ABI")
  endif()

  foreach(name c10 torch_cpu torch torch_python)
    add_library(torch::lib::${name} SHARED IMPORTED GLOBAL)
    set_target_properties(torch::lib::${name} PROPERTIES IMPORTED_LOCATION "${dir}/lib/lib${name}.so")
  endforeach()

  add_library(torch_cpu_headers INTERFACE)
  target_include_directories(torch_cpu_headers SYSTEM INTERFACE
    "${dir}/include" "${dir}/include/torch/csrc/api/include" "${dir}/include/torch/csrc/distributed")
  # The macros that torch's own build sets for its distributed headers.
  target_compile_definitions(torch_cpu_headers INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)

  add_library(torch_cpu INTERFACE)
  add_library(torch::cpu ALIAS torch_cpu)
  target_link_libraries(torch_cpu INTERFACE torch_cpu_headers torch::lib::torch torch::lib::torch_cpu torch::lib::c10)
  # libtorch registers operators in static initialisers, so it must load although no symbol of it is used.
  target_link_options(torch_cpu INTERFACE -Wl,--no-as-needed)

  add_library(torch_python INTERFACE)
  add_library(torch::python ALIAS torch_python)
  target_link_libraries(torch_python INTERFACE torch_cpu torch::lib::torch_python)
  # pybind11 comes from torch's own include folder: the internals must be those that torch was built with.
  target_compile_definitions(torch_python INTERFACE TORCH_API_INCLUDE_EXTENSION_H)
endfunction()
