#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace stagecraft {

// How long the steps of a tokenizer may make a text. A limit is needed: a small file can describe
// forty steps that each double a text, and no memory would hold the result. In real tokenizers,
// the largest growth is 11 (U+FDFA in NFKC) times 3 (a space becomes U+2581).
class GrowthLimit {
 public:
  static constexpr std::size_t kTimes = 64;
  static constexpr std::size_t kMore = 4096;  // for what is put in front of a short text

  // `where` begins the message of an Error; the text has `bytes` bytes.
  explicit GrowthLimit(std::string where, std::size_t bytes = 0)
      : where_(std::move(where)), bytes_(bytes) {}

  // The text has `bytes` bytes more than was known before.
  void add(std::size_t bytes) { bytes_ += bytes; }
  // `bytes` bytes are finished: check() counts them from now on.
  void use(std::size_t bytes) { used_ += bytes; }
  // Throws Error naming the step if it makes `bytes` bytes and this is too much.
  void check(std::string_view step, std::size_t bytes) const {
    const std::size_t most = kTimes * bytes_ + kMore;
    if (used_ + bytes <= most) return;
    throw Error("{}: {}: expected at most {} bytes made from a text of {} bytes, found more",
                where_, step, most, bytes_);
  }

 private:
  std::string where_;
  std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace stagecraft
