#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// What the checker found in a student's kernels, from the records of src/cuda_emulator/report.cpp.
// They come from the worker, so they may be forged: a field that is not a number counts as 0.
struct Watched {
  struct Finding {
    std::string kind;  // "race"
    std::string place;
    std::string text;
  };
  struct Line {
    std::string place;
    bool is_shared = false;
    std::uint64_t requests = 0, sectors = 0, ideal = 0, conflicts = 0;
  };

  std::vector<Finding> findings;
  std::vector<Line> lines;
  std::uint64_t distinct_bytes = 0;  // of global memory, of all launches

  explicit Watched(const Response& response, const std::string& output = "report");
  std::uint64_t bytes_in_sectors() const;
  std::uint64_t conflicts() const;
  std::uint64_t shared_requests() const;
};

}  // namespace stagecraft::stages
