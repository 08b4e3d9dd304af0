// SPDX-License-Identifier: Apache-2.0
// The control surface of libfake_pjrt.so: what tests count, break and limit. Plain C, for dlsym and ctypes; every
// function may be called from any thread. Function names are given with or without the "PJRT_" prefix.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif
#define FAKE_PJRT_EXPORT __attribute__((visibility("default")))

// Everything back to the start: counters, asked-for failures, synchronous mode, no memory limit. Waits for executions
// in flight. Live objects are not touched.
FAKE_PJRT_EXPORT void fake_pjrt_reset(void);

// Calls since the last reset. A fallible call returns PJRT_Error* and is neither PJRT_Error_* nor a PJRT_*_Destroy.
FAKE_PJRT_EXPORT int64_t fake_pjrt_calls(const char* name);
FAKE_PJRT_EXPORT int64_t fake_pjrt_total_calls(void);
FAKE_PJRT_EXPORT int64_t fake_pjrt_fallible_calls(void);

// The n-th fallible call from now (the next one is 1) returns an error of `code` and does nothing else; its message is
// "injected failure at call n (PJRT_x)". n = 0 takes the wish back.
FAKE_PJRT_EXPORT void fake_pjrt_fail_call(int64_t n, int code);
// The same for the k-th call of one function.
FAKE_PJRT_EXPORT void fake_pjrt_fail_call_named(const char* name, int64_t k, int code);
// The k-th PJRT_LoadedExecutable_Execute from now succeeds, but the ready events of its outputs carry an error.
FAKE_PJRT_EXPORT void fake_pjrt_fail_async(int64_t k, int code);

// From now on executions and transfers complete on a background thread, in order, `delay_us` after their turn comes.
// A negative delay turns this off (the default: everything completes before the call returns, except on clients created
// with the option asynchronous = true). In asynchronous mode
// fresh memory holds 0xFD until its producer has run, and donated memory its old content.
FAKE_PJRT_EXPORT void fake_pjrt_set_async(int64_t delay_us);

// Allocations of buffers that would make fake_pjrt_live_bytes exceed `bytes` fail with code 8 (0: no limit). With a
// limit PJRT_Device_MemoryStats works too; without one it is UNIMPLEMENTED as on XLA:CPU.
FAKE_PJRT_EXPORT void fake_pjrt_set_memory_limit(int64_t bytes);

// Objects that the caller has not destroyed yet, and the device memory held (zero-copy memory of the host is not
// counted).
FAKE_PJRT_EXPORT int64_t fake_pjrt_live_buffers(void);
FAKE_PJRT_EXPORT int64_t fake_pjrt_live_bytes(void);
FAKE_PJRT_EXPORT int64_t fake_pjrt_live_executables(void);  // loaded ones
FAKE_PJRT_EXPORT int64_t fake_pjrt_live_events(void);
FAKE_PJRT_EXPORT int64_t fake_pjrt_live_errors(void);

// The text of the last program given to PJRT_Client_Compile, also when that failed. Writes at most `size` bytes
// including the final 0, returns the full length without it.
FAKE_PJRT_EXPORT int64_t fake_pjrt_last_program(char* text, size_t size);

#if defined(__cplusplus)
}
#endif
