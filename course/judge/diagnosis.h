#pragma once

#include <functional>
#include <string>
#include <vector>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// The right answer for one output: f64 numbers and, for each, how far off is still right.
struct Expected {
  std::vector<std::size_t> shape;
  std::vector<double> values;
  std::vector<double> allowed;
  bool whole = false;  // ids, lengths, flags: two of them are the same or they are not
};

// True if every element of `got` is within what is allowed (NaN where NaN is expected).
bool agrees(const Expected& expected, const Tensor& got);

// How many wrong elements identify a mistake: all that are finite, and of those that are NaN,
// infinite or never written, no more than there are right elements (one of these is like the other,
// so they only show where the mistake is). 0 where there are too many or too few.
std::size_t count_telling(const Expected& expected, const Tensor& got);

// What is wrong with `got`, in lines for the student: where first, expected and got, how much of
// it, and what the error looks like (a factor, a shift, a transpose, the right numbers misplaced).
std::string diagnose(const std::string& function, const std::string& output,
                     const Expected& expected, const Tensor& got);

// The same for a sequence of tokens: which is the first that is wrong, by `spell`'s name for it, or
// that there are too few or too many. `what` begins the sentence ("the tokens that were chosen").
std::string diagnose_tokens(const std::string& what, const std::vector<double>& expected,
                            const std::vector<float>& got,
                            const std::function<std::string(int)>& spell);

// The same for how often each token was drawn in `total` draws.
std::string diagnose_shares(const Expected& expected, const Tensor& counts, std::size_t total);

}  // namespace stagecraft::stages
