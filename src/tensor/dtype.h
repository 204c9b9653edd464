#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft {

// How the elements of a stored tensor are written. The engine computes in f32; the integer types
// and F64 occur in test dumps, the quantised ones (Q4_0 to MXFP4) in GGUF files.
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
  Q4_0,
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
  MXFP4,    // blocks, see dequantize.h
  F8_E4M3,  // safetensors, see float8.h
};

// The smallest unit that can be decoded alone: `elements` in `bytes`. One element, except for the
// quantised types, where a block of elements shares its scale.
struct DTypeBlock {
  std::size_t elements;
  std::size_t bytes;
};
DTypeBlock dtype_block(DType dtype);
bool is_quantized(DType dtype);

std::size_t dtype_size(DType dtype);  // bytes of one element, which is no quantised one
std::string_view dtype_name(DType dtype);
// As safetensors spells it ("F32"); nullopt if it has no such type.
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace stagecraft
