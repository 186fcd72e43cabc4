// Lets a CPU build of torch believe that there is a CUDA device: it switches between devices that do nothing.
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>

C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>);

namespace at {
struct CUDAHooks : CUDAHooksInterface {
  CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex deviceCount() const override { return 1; }
};
REGISTER_CUDA_HOOKS(CUDAHooks);

namespace accelerator {
// That of a CPU build knows from when it was compiled that there is none.
std::optional<c10::DeviceType> getAccelerator(bool) { return c10::DeviceType::CUDA; }
}  // namespace accelerator
}  // namespace at
