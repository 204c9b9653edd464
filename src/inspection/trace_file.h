#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/compare.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {

// The activations of a forward pass, in a file that `stagecraft trace` or reference/trace.py wrote.
class TraceFile {
 public:
  // Throws Error if the file is not a safetensors file, or if __metadata__.order is given but is
  // not a list of different names.
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

// The result of comparing two traces, tensor by tensor.
struct TraceComparison {
  std::size_t tensors = 0;  // the number of tensors of A
  std::size_t only_in_b = 0;
  std::size_t agreeing = 0;  // equal tensors from the beginning; == tensors if nothing differs
  std::size_t values = 0;    // numbers that were compared
  std::size_t nan = 0;       // numbers that are NaN on both sides
  std::string name;          // the first tensor that differs; else the one with the largest gap
  Comparison result;         // the comparison of that tensor
  std::string first_place;   // the place of result.first in words; empty if nothing differs
  std::string worst_place;   // the place of result.worst in words
};

// Compares the tensors of `a`, in its order, until one differs. `b` may have more tensors: the
// trace of a student's functions has fewer than ours. Throws Error if `a` gives no order, if `b`
// lacks one of its tensors, or if shapes differ.
TraceComparison compare_traces(const TraceFile& a, const TraceFile& b, Tolerance tolerance);

// The place of an element of an activation in words: "layer 1, head 3, query 6, key 2" or "position
// 4, token 17". head_dim: needed to find the head in the columns of q, k, v and attn_out; 0 if
// unknown. For a shape that no activation has: "index [4, 17, 0]".
std::string place_in_trace(std::string_view name, std::span<const std::size_t> shape,
                           std::size_t index, std::size_t head_dim);

}  // namespace stagecraft
