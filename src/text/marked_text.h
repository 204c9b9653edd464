#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin;
  std::size_t end;
  bool operator==(const TextSpan&) const = default;
};

// UTF-8 in which the bytes that a user typed are marked. All other bytes are the frame: text of a
// chat template, in which "<|im_end|>" is a token. Typed text stays text, whatever it spells.
//
//   <|im_start|>user\nHello!<|im_end|>\n
//                    ^^^^^^                 typed
class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string_view frame) : bytes_(frame) {}
  static MarkedText typed(std::string_view text);

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool has_typed() const { return !typed_.empty(); }
  // In order. No span is empty, and no two spans touch.
  const std::vector<TextSpan>& typed_spans() const { return typed_; }

  void append(const MarkedText& more) { append_part(more, 0, more.size()); }
  void append(std::string_view bytes, bool typed);
  // Bytes [begin, end) of another text.
  void append_part(const MarkedText& other, std::size_t begin, std::size_t end);
  MarkedText part(std::size_t begin, std::size_t end) const;

  // Calls each(bytes, typed) for each maximal stretch of [begin, end) that is all typed or all
  // frame, in order.
  template <class Each>
  void for_each_stretch(std::size_t begin, std::size_t end, const Each& each) const {
    const std::string_view all = bytes_;
    const auto ends_before = [&](const TextSpan& span) { return span.end <= begin; };
    auto at = std::partition_point(typed_.begin(), typed_.end(), ends_before);
    for (; at != typed_.end() && at->begin < end; ++at) {
      const TextSpan& span = *at;
      if (begin < span.begin) each(all.substr(begin, span.begin - begin), false);
      begin = begin < span.begin ? span.begin : begin;
      const std::size_t stop = span.end < end ? span.end : end;
      each(all.substr(begin, stop - begin), true);
      begin = stop;
    }
    if (begin < end) each(all.substr(begin, end - begin), false);
  }

 private:
  std::string bytes_;
  std::vector<TextSpan> typed_;
};

}  // namespace stagecraft
