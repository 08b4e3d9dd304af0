// SPDX-License-Identifier: Apache-2.0
// InlineVector: a vector of trivially copyable elements whose first N live inside it. Never initialises them: made for
// objects on the stack of a hot path.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/status.h"

namespace tpu {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() {}
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() {
    if (data_ != inline_data()) std::free(data_);
  }

  void push_back(const T& v) {
    if (__builtin_expect(size_ == capacity_, 0)) Grow(size_ + 1);
    data_[size_++] = v;
  }
  // Room for n more elements; returns where they begin. The size grows by n.
  T* Extend(size_t n) {
    if (__builtin_expect(size_ + n > capacity_, 0)) Grow(size_ + n);
    T* begin = data_ + size_;
    size_ += n;
    return begin;
  }
  void resize_down(size_t n) { size_ = n; }
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }

 private:
  T* inline_data() { return reinterpret_cast<T*>(storage_); }
  void Grow(size_t at_least) {
    size_t capacity = capacity_ * 2 < at_least ? at_least : capacity_ * 2;
    T* fresh = static_cast<T*>(std::malloc(capacity * sizeof(T)));
    TPU_CHECK(fresh);
    std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    if (data_ != inline_data()) std::free(data_);
    data_ = fresh;
    capacity_ = capacity;
  }

  T* data_ = inline_data();
  size_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char storage_[N * sizeof(T)];
};

}  // namespace tpu
