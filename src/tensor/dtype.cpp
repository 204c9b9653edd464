#include "tensor/dtype.h"

#include <array>

namespace stagecraft {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  DTypeBlock block;
};

constexpr std::array kEntries = {
    Entry{DType::F64, "F64", {1, 8}},
    Entry{DType::F32, "F32", {1, 4}},
    Entry{DType::F16, "F16", {1, 2}},
    Entry{DType::BF16, "BF16", {1, 2}},
    Entry{DType::I64, "I64", {1, 8}},
    Entry{DType::I32, "I32", {1, 4}},
    Entry{DType::I16, "I16", {1, 2}},
    Entry{DType::I8, "I8", {1, 1}},
    Entry{DType::U8, "U8", {1, 1}},
    Entry{DType::Bool, "BOOL", {1, 1}},
    Entry{DType::Q4_0, "Q4_0", {32, 18}},
    Entry{DType::Q4_1, "Q4_1", {32, 20}},
    Entry{DType::Q5_0, "Q5_0", {32, 22}},
    Entry{DType::Q5_1, "Q5_1", {32, 24}},
    Entry{DType::Q8_0, "Q8_0", {32, 34}},
    Entry{DType::Q2_K, "Q2_K", {256, 84}},
    Entry{DType::Q3_K, "Q3_K", {256, 110}},
    Entry{DType::Q4_K, "Q4_K", {256, 144}},
    Entry{DType::Q5_K, "Q5_K", {256, 176}},
    Entry{DType::Q6_K, "Q6_K", {256, 210}},
    Entry{DType::Q8_K, "Q8_K", {256, 292}},
    Entry{DType::IQ4_NL, "IQ4_NL", {32, 18}},
    Entry{DType::IQ4_XS, "IQ4_XS", {256, 136}},
    Entry{DType::MXFP4, "MXFP4", {32, 17}},
    Entry{DType::F8_E4M3, "F8_E4M3", {1, 1}},
};

// The table is indexed by enumerator.
constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].dtype != static_cast<DType>(i)) return false;
  }
  return kEntries.back().dtype == kLastDType;
}
static_assert(is_in_order());

const Entry& entry_of(DType dtype) { return kEntries[static_cast<std::size_t>(dtype)]; }

}  // namespace

DTypeBlock dtype_block(DType dtype) { return entry_of(dtype).block; }

bool is_quantized(DType dtype) { return dtype_block(dtype).elements > 1; }

std::string_view dtype_name(DType dtype) { return entry_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name && !is_quantized(entry.dtype)) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace stagecraft
