#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft {

// How one element of a stored tensor is written. The engine computes in f32; the integer types and
// F64 occur in test dumps.
enum class DType { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

std::size_t dtype_size(DType dtype);                          // bytes of one element
std::string_view dtype_name(DType dtype);                     // "F32", as safetensors spells it
std::optional<DType> dtype_from_name(std::string_view name);  // nullopt if unknown

}  // namespace stagecraft
