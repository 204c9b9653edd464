#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/compare.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {

// The activations of a forward pass as `stagecraft trace` and reference/trace.py write them.
class TraceFile {
 public:
  // Throws Error if it is no safetensors file, or if __metadata__.order is given but is no list of
  // names, each of them once.
  explicit TraceFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }                 // the path, for errors
  const std::vector<std::string>& order() const { return order_; }  // empty if not given
  const std::map<std::string, std::string>& metadata() const { return file_.metadata(); }
  const StoredTensor* find(const std::string& name) const;    // nullptr if absent
  const StoredTensor& tensor(const std::string& name) const;  // throws Error if absent

 private:
  std::string name_;
  SafetensorsFile file_;
  std::vector<std::string> order_;
};

// What comparing two traces, tensor after tensor, found.
struct TraceComparison {
  std::size_t tensors = 0;  // to compare: those of A
  std::size_t only_in_b = 0;
  std::size_t agreeing = 0;  // of those, from the beginning; == tensors where nothing differs
  std::size_t values = 0;    // numbers compared, and
  std::size_t nan = 0;       // how many of them are NaN on both sides
  std::string name;          // the first tensor that differs; else the one with the largest gap
  Comparison result;         // of that tensor
  std::string first_place;   // of result.first, in words; empty where nothing differs
  std::string worst_place;   // of result.worst, in words
};

// Goes through `a`'s tensors in its order until one differs. `b` may have more: the trace of a
// student's functions has fewer than ours. Throws Error if `a` gives no order, if a tensor of it is
// missing in `b`, or if shapes or dtypes do not fit.
TraceComparison compare_traces(const TraceFile& a, const TraceFile& b, Tolerance tolerance);

// Where an element of an activation lies: "layer 1, head 3, query 6, key 2" or "position 4, token
// 17". head_dim tells the heads in the columns of q, k, v and attn_out apart; 0 if unknown. Where
// the shape is none that a trace has: "index [4, 17, 0]".
std::string place_in_trace(std::string_view name, std::span<const std::size_t> shape,
                           std::size_t index, std::size_t head_dim);

}  // namespace stagecraft
