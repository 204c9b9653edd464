#pragma once

#include "cuda_emulator.h"
#include "operators/cuda/operators.h"

// load8 reads eight neighbouring weights of a row, in any number format, as floats. Eight f16 are
// 16 bytes, the most that a lane can load with one instruction. Neighbouring lanes load
// neighbouring bytes, so a warp reads one contiguous range of memory (the load is "coalesced"). A
// new number format needs a branch in load8 and in with_type; for tensor cores, also in unpack8,
// kHasScales and kLoadBytes (tensor_linear.cu).
namespace stagecraft::cuda {

inline constexpr unsigned kPerLoad = 8;

__device__ inline void load8(const float* from, float (&to)[kPerLoad]) {
  const float4 a = *reinterpret_cast<const float4*>(from);
  const float4 b = *reinterpret_cast<const float4*>(from + 4);
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}

__device__ inline void store8(float* to, const float (&from)[kPerLoad]) {
  *reinterpret_cast<float4*>(to) = {from[0], from[1], from[2], from[3]};
  *reinterpret_cast<float4*>(to + 4) = {from[4], from[5], from[6], from[7]};
}

__device__ inline float f16_to_f32(unsigned bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// A bf16 is the upper half of an f32.
__device__ inline float bf16_to_f32(unsigned bits) { return __uint_as_float(bits << 16); }

template <WeightType kType>
__device__ inline void load8(const DeviceMatrix& weight, unsigned row, unsigned column,
                             float (&to)[kPerLoad]) {
  const size_t at = static_cast<size_t>(row) * weight.stride + column;
  if constexpr (kType == WeightType::F32) {
    load8(static_cast<const float*>(weight.values) + at, to);
  } else if constexpr (kType == WeightType::F16 || kType == WeightType::BF16) {
    const uint4 four =
        *reinterpret_cast<const uint4*>(static_cast<const unsigned short*>(weight.values) + at);
    const unsigned words[4] = {four.x, four.y, four.z, four.w};
    for (unsigned i = 0; i < 4; ++i) {  // the lower half of a word comes first
      const unsigned low = words[i] & 0xffff, high = words[i] >> 16;
      to[2 * i] = kType == WeightType::F16 ? f16_to_f32(low) : bf16_to_f32(low);
      to[2 * i + 1] = kType == WeightType::F16 ? f16_to_f32(high) : bf16_to_f32(high);
    }
  } else if constexpr (kType == WeightType::Q8_0) {
    const uint2 two =
        *reinterpret_cast<const uint2*>(static_cast<const signed char*>(weight.values) + at);
    const float scale = f16_to_f32(static_cast<const unsigned short*>(weight.scales)[at / 32]);
    for (unsigned i = 0; i < kPerLoad; ++i) {
      const unsigned word = i < 4 ? two.x : two.y;
      to[i] = scale * static_cast<float>(static_cast<signed char>(word >> 8 * (i % 4) & 0xff));
    }
  } else {
    const unsigned word = *reinterpret_cast<const unsigned*>(
        static_cast<const unsigned char*>(weight.values) + at / 2);
    float scale, offset;  // weight = scale * number + offset
    if constexpr (kType == WeightType::Q4_0) {
      scale = f16_to_f32(static_cast<const unsigned short*>(weight.scales)[at / 32]);
      offset = -8.0f * scale;
    } else {
      const unsigned pair = static_cast<const unsigned*>(weight.scales)[at / 32];
      scale = f16_to_f32(pair & 0xffff);
      offset = f16_to_f32(pair >> 16);
    }
    for (unsigned i = 0; i < kPerLoad; ++i) {
      const unsigned shift = 4 * (i / 2) + 16 * (i % 2);
      to[i] = fmaf(scale, static_cast<float>(word >> shift & 0xf), offset);
    }
  }
}

// Turns a type that is known at run time into a template parameter: calls use(Type<type>()).
template <WeightType kType>
struct Type {
  static constexpr WeightType value = kType;
};
// If the host calls with_type, `use` is host code; if a kernel calls it, `use` is device code. By
// default, nvcc would warn that `use` is not compiled for both. The pragma switches this off.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Use>
__host__ __device__ inline void with_type(WeightType type, Use&& use) {
  switch (type) {
    case WeightType::F32:
      return use(Type<WeightType::F32>());
    case WeightType::F16:
      return use(Type<WeightType::F16>());
    case WeightType::BF16:
      return use(Type<WeightType::BF16>());
    case WeightType::Q8_0:
      return use(Type<WeightType::Q8_0>());
    case WeightType::Q4_0:
      return use(Type<WeightType::Q4_0>());
    case WeightType::Q4_1:
      return use(Type<WeightType::Q4_1>());
  }
}

}  // namespace stagecraft::cuda
