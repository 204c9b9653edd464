#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace stagecraft {

// How the texts of tokens become text again: the "decoder" of a tokenizer.json, one step after the
// other. Immutable; a Decoding runs it.
class Decoder {
 public:
  // Tokens joined by spaces, as where a tokenizer.json has no decoder.
  Decoder();
  // Throws Error naming the type where it is not supported.
  explicit Decoder(const JsonNode& node);

  struct Join {};          // a space between tokens
  struct ByteLevel {};     // GPT-2's alphabet back to bytes
  struct ByteFallback {};  // <0x0A> to its byte
  struct Fuse {};          // all tokens one
  struct Replace {         // in each token
    std::string pattern;
    std::string content;
    std::string content_in_first;  // in the first token of all
  };
  struct Strip {  // up to so many of a character at the ends of each token
    std::string character;
    std::size_t start;
    std::size_t stop;
  };
  struct DropFirst {  // this text, where the first token begins with it
    std::string text;
    bool until_any;  // and the next ones, as long as nothing has been put out
  };
  using Step = std::variant<Join, ByteLevel, ByteFallback, Fuse, Replace, Strip, DropFirst>;
  explicit Decoder(std::vector<Step> steps) : steps_(std::move(steps)) {}
  const std::vector<Step>& steps() const { return steps_; }

 private:
  void read(const JsonNode& node);

  std::vector<Step> steps_;
};

// One run of a Decoder, token by token. Hugging Face defines the steps on the list of all tokens;
// here each step passes on what it can be sure of as soon as it can, so that a story can be shown
// while it is told. The cost of a token does not grow with what came before.
class Decoding {
 public:
  // `decoder` is not needed afterwards.
  explicit Decoding(const Decoder& decoder);
  Decoding(Decoding&&) noexcept;
  Decoding& operator=(Decoding&&) noexcept;
  ~Decoding();

  void push(std::string_view token);
  // No token comes any more.
  void finish();
  // The bytes that have become certain since the last call. They may end within a character.
  std::string take();

 private:
  class Stage;
  class Output;
  class ByteLevelStage;
  class ByteFallbackStage;
  class DropFirstStage;
  class FuseStage;
  class JoinStage;
  class ReplaceStage;
  class StripStage;

  std::vector<std::unique_ptr<Stage>> stages_;  // from the output back to the first
  Output* output_;
};

}  // namespace stagecraft
