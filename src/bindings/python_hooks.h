// SPDX-License-Identifier: Apache-2.0
// What the engine asks of Python: signals during long waits, the garbage collector when memory is short.
#pragma once

namespace tpu::bindings {

// Gives the engine the hooks. Requires: the GIL.
void InstallPythonHooks();

// For waits of bindings' own, every 50 ms. False when a signal handler raised: leave the wait and call ThrowInterrupt.
bool ContinueWaiting();
// Throws the exception that a signal handler raised during a wait of this thread, if there is one.
void ThrowInterrupt();

}  // namespace tpu::bindings
