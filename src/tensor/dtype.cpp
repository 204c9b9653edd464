#include "tensor/dtype.h"

#include <array>

namespace stagecraft {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array kEntries = {
    Entry{DType::F64, "F64", 8},   Entry{DType::F32, "F32", 4}, Entry{DType::F16, "F16", 2},
    Entry{DType::BF16, "BF16", 2}, Entry{DType::I64, "I64", 8}, Entry{DType::I32, "I32", 4},
    Entry{DType::I16, "I16", 2},   Entry{DType::I8, "I8", 1},   Entry{DType::U8, "U8", 1},
    Entry{DType::Bool, "BOOL", 1},
};

const Entry& entry_of(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return entry;
  }
  return kEntries.front();  // unreachable: every enumerator is listed
}

}  // namespace

std::size_t dtype_size(DType dtype) { return entry_of(dtype).size; }

std::string_view dtype_name(DType dtype) { return entry_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace stagecraft
