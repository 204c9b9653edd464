#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/pipeline/growth_limit.h"

namespace stagecraft {

// How the texts of tokens become text again: the "decoder" of a tokenizer.json, a list of steps.
// Immutable; class Decoding runs it.
class Decoder {
 public:
  // Joins tokens with spaces: the default of a tokenizer.json without decoder.
  Decoder();
  // Throws Error naming the type if it is not supported.
  explicit Decoder(const JsonNode& node);

  struct Join {};          // a space between tokens
  struct ByteLevel {};     // GPT-2's alphabet back to bytes
  struct ByteFallback {};  // <0x0A> to its byte
  struct Fuse {};          // joins all tokens
  struct Replace {         // in each token
    std::string pattern;
    std::string content;
    std::string content_in_first;  // in the very first token
  };
  struct Strip {  // removes up to `start` and `stop` of a character at the ends of each token
    std::string character;
    std::size_t start;
    std::size_t stop;
  };
  struct DropFirst {  // removes this text if the first token begins with it
    std::string text;
    bool until_any;  // and from the next tokens, until something was output
  };
  using Step = std::variant<Join, ByteLevel, ByteFallback, Fuse, Replace, Strip, DropFirst>;
  explicit Decoder(std::vector<Step> steps) : steps_(std::move(steps)) {}
  const std::vector<Step>& steps() const { return steps_; }
  const std::string& where() const { return where_; }  // begins the message of an Error

 private:
  void read(const JsonNode& node);

  std::string where_ = "decoder";
  std::vector<Step> steps_;
};

// One run of a Decoder, token by token. Hugging Face defines the steps on the list of all tokens.
// Here each step passes on text as soon as it is final, so that it can be shown during generation.
// The cost per token does not grow with the length of the text.
class Decoding {
 public:
  // `decoder` may be destroyed afterwards.
  explicit Decoding(const Decoder& decoder);
  Decoding(Decoding&&) noexcept;
  Decoding& operator=(Decoding&&) noexcept;
  ~Decoding();

  // Throws Error if the steps make more from the tokens so far than GrowthLimit allows.
  void push(std::string_view token);
  // Call it after the last token.
  void finish();
  // The bytes that became final since the last call. They may end inside a character.
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

  std::unique_ptr<GrowthLimit> limit_;          // for all tokens together
  std::vector<std::unique_ptr<Stage>> stages_;  // from the output back to the first step
  Output* output_;
};

}  // namespace stagecraft
