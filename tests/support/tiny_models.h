#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/token.h"
#include "inspection/trace_file.h"

namespace stagecraft {

inline const std::string kModels = TEST_DATA "/models/";

// The folders of kModels, sorted by name. Each holds a tiny model and a trace that PyTorch made.
inline std::vector<std::string> tiny_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The token ids of the text from which a trace was made.
inline std::vector<TokenId> ids_of(const TraceFile& trace) {
  const StoredTensor& tensor = trace.tensor("ids");
  std::vector<std::int64_t> wide(tensor.bytes.size() / sizeof(std::int64_t));
  std::memcpy(wide.data(), tensor.bytes.data(), tensor.bytes.size());
  return {wide.begin(), wide.end()};
}

}  // namespace stagecraft
