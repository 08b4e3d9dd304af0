// SPDX-License-Identifier: Apache-2.0
#include "aten/generator.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <mutex>

#include "aten/device.h"
#include "aten/tensor.h"

namespace tpu::aten {
namespace {

constexpr int64_t kStateBytes = 16;

// Apart from the generator, because graphsafe_get_state hands out generators that share it. It has a mutex of its own: the
// generators that share it have one each. Order: the generator's, then this one.
struct State : c10::intrusive_ptr_target {
  std::mutex mu;
  RandomDraw now{c10::default_rng_seed_val, 0};

  RandomDraw Get() {
    std::lock_guard<std::mutex> lock(mu);
    return now;
  }
  void Set(RandomDraw next) {
    std::lock_guard<std::mutex> lock(mu);
    now = next;
  }
  void SetOffset(uint64_t offset) {
    std::lock_guard<std::mutex> lock(mu);
    now.offset = offset;
  }
  RandomDraw Take(uint64_t counters) {
    std::lock_guard<std::mutex> lock(mu);
    RandomDraw taken = now;
    now.offset += counters;
    return taken;
  }
};

// Callers hold mutex_, as for every GeneratorImpl.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(int device, c10::intrusive_ptr<State> state = c10::make_intrusive<State>())
      : GeneratorImpl(c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        state_(std::move(state)) {}

  static c10::DeviceType device_type() { return kDeviceType; }

  void set_current_seed(uint64_t seed) override { state_->Set({seed, 0}); }
  uint64_t current_seed() const override { return state_->Get().seed; }
  uint64_t seed() override {
    uint64_t fresh = c10::detail::getNonDeterministicRandom();
    set_current_seed(fresh);
    return fresh;
  }
  void set_offset(uint64_t offset) override { state_->SetOffset(offset); }
  uint64_t get_offset() const override { return state_->Get().offset; }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    RandomDraw now = state_->Get();
    static_assert(sizeof now == kStateBytes);
    at::TensorBase bytes = at::detail::empty_cpu({kStateBytes}, c10::ScalarType::Byte);
    std::memcpy(bytes.mutable_data_ptr(), &now, kStateBytes);
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& bytes) override {
    at::detail::check_rng_state(bytes);
    TORCH_CHECK(bytes.numel() == kStateBytes, "RNG state is wrong size: expected ", kStateBytes, " bytes, got ", bytes.numel());
    RandomDraw next;
    std::memcpy(&next, bytes.data(), kStateBytes);
    state_->Set(next);
  }

  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<Generator>(device().index(), state_);
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    auto* generator = dynamic_cast<Generator*>(other.get());
    TORCH_CHECK(generator, "graphsafe_set_state expects a generator of a tpu device");
    state_ = generator->state_;
  }

  RandomDraw Take(uint64_t counters) { return state_->Take(counters); }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->state_->Set(state_->Get());
    return copy;
  }

  c10::intrusive_ptr<State> state_;
};

}  // namespace

const at::Generator& DefaultGenerator(int device) {
  static std::once_flag made[kMaxDevices];
  static at::Generator* generators[kMaxDevices];  // leaked: references to them are held until exit
  device = CheckedOrCurrentDevice(device);
  std::call_once(made[device], [&] { generators[device] = new at::Generator(at::make_generator<Generator>(device)); });
  return *generators[device];
}

at::Generator NewGenerator(int device) { return at::make_generator<Generator>(CheckedOrCurrentDevice(device)); }

RandomDraw Draw(const std::optional<at::Generator>& generator, int device, int64_t count) {
  Generator* source = generator && generator->defined() ? at::check_generator<Generator>(generator)
                                                        : at::check_generator<Generator>(DefaultGenerator(device));
  std::lock_guard<std::mutex> lock(source->mutex_);
  return source->Take((static_cast<uint64_t>(count) + 3) & ~uint64_t{3});
}

}  // namespace tpu::aten
