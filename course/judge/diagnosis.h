#pragma once

#include <functional>
#include <string>
#include <vector>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// The right answer for one output: numbers in f64 and, for each, how large an error is allowed.
struct Expected {
  std::vector<std::size_t> shape;
  std::vector<double> values;
  std::vector<double> allowed;
  bool whole = false;  // ids, lengths, flags: whole numbers, which must be equal
};

// True if every element of `got` is within its tolerance (NaN if NaN is expected).
bool agrees(const Expected& expected, const Tensor& got);

// How many wrong elements can identify a mistake: all finite ones, and of those that are NaN,
// infinite or never written at most as many as there are right elements (one NaN is like any other,
// so only their places tell something). 0 if the sizes differ.
std::size_t count_telling(const Expected& expected, const Tensor& got);

// How many wrong elements still hold the number that they held before the call. before: the input
// that the call overwrites.
std::size_t count_unchanged(const Expected& expected, const Tensor& got, const Tensor& before);

// Describes the error in `got`, in lines for the student: the first wrong place, expected and got,
// how many elements are wrong, and what the error looks like (a factor, a shift, a transpose, right
// numbers in wrong places).
std::string diagnose(const std::string& function, const std::string& output,
                     const Expected& expected, const Tensor& got);

// The same for a sequence of tokens: names the first wrong token with `spell`, or says that there
// are too few or too many. `what` begins the sentence ("the tokens that were chosen").
std::string diagnose_tokens(const std::string& what, const std::vector<double>& expected,
                            const std::vector<float>& got,
                            const std::function<std::string(int)>& spell);

// The same for how often each token was drawn in `total` draws.
std::string diagnose_shares(const Expected& expected, const Tensor& counts, std::size_t total);

}  // namespace stagecraft::stages
