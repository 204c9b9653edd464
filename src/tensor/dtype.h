#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft {

// The number format of a stored tensor. The quantised types (Q4_0 to MXFP4) occur in GGUF files.
// The integer types and F64 occur in test dumps; I32, I64 and U8 also in quantised safetensors
// files.
enum class DType {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool,  // safetensors
  Q4_0,  // Q4_0 to MXFP4: blocks, see dequantize.h
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  F8_E4M3,  // safetensors, see float8.h
};
inline constexpr DType kLastDType = DType::F8_E4M3;

// The smallest unit that can be decoded alone: `elements` elements in `bytes` bytes. It is one
// element, except for the quantised types: there it is a block of elements that share a scale.
struct DTypeBlock {
  std::size_t elements;
  std::size_t bytes;
};
DTypeBlock dtype_block(DType dtype);
bool is_quantized(DType dtype);
// Whether it is a type that matrices have before they are quantised.
constexpr bool is_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

std::string_view dtype_name(DType dtype);
// The type with this name in safetensors files ("F32"); nullopt if there is none.
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace stagecraft
