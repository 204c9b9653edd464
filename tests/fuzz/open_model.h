#pragma once

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "model/config_file.h"
#include "tests/fuzz/fuzz.h"

namespace stagecraft {

template <class Ask>
void try_to(Ask ask) {
  try {
    ask();
  } catch (const Error&) {
  }
}

// Any model file must give a config, and weights that lie within the file, or an Error.
inline void try_model(const std::filesystem::path& path) {
  try_to([&] { read_config(path); });
  try_to([&] {
    const Checkpoint checkpoint = Checkpoint::open(path);
    unsigned sum = 0;
    for (const StoredTensor* tensor : checkpoint.tensors()) {
      for (const std::byte byte : tensor->bytes) sum += std::to_integer<unsigned>(byte);
    }
    volatile unsigned touched = sum;  // so that the compiler keeps the reads
    static_cast<void>(touched);
  });
}

}  // namespace stagecraft
