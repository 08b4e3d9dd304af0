// SPDX-License-Identifier: Apache-2.0
// What is never freed on purpose, for AddressSanitizer's search for leaks.
#if defined(__SANITIZE_ADDRESS__)
// Old strings of settings stay: readers on other threads may hold them. Pools that a thread makes anew after its end have
// nobody to free them.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:tpu::GetSettings\nleak:tpu::SetSetting\nleak:Leftover\n"; }
#endif
