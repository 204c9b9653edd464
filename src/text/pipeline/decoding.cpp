#include <utility>

#include "base/begun.h"
#include "text/pipeline/byte_level.h"
#include "text/pipeline/decoder.h"
#include "text/subwords/byte_tokens.h"

namespace stagecraft {

// A running step. Each token arrives as any number of bytes() calls, then one end_token().
class Decoding::Stage {
 public:
  explicit Stage(Stage* next) : next_(next) {}
  virtual ~Stage() = default;
  virtual void bytes(std::string_view bytes) = 0;
  virtual void end_token() = 0;
  virtual void finish() = 0;

 protected:
  Stage& next() { return *next_; }

 private:
  Stage* next_;
};

class Decoding::Output : public Stage {
 public:
  Output() : Stage(nullptr) {}
  void bytes(std::string_view bytes) override { text_ += bytes; }
  void end_token() override {}
  void finish() override {}
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

class Decoding::JoinStage : public Stage {
 public:
  using Stage::Stage;
  void bytes(std::string_view bytes) override {
    separate();
    next().bytes(bytes);
  }
  void end_token() override {
    separate();
    within_token_ = false;
    after_token_ = true;
  }
  void finish() override { next().finish(); }

 private:
  void separate() {
    if (!within_token_ && after_token_) next().bytes(" ");
    within_token_ = true;
  }

  bool within_token_ = false;
  bool after_token_ = false;
};

class Decoding::FuseStage : public Stage {
 public:
  using Stage::Stage;
  void bytes(std::string_view bytes) override { next().bytes(bytes); }
  void end_token() override {}
  void finish() override {
    next().end_token();
    next().finish();
  }
};

// Also joins all tokens: the bytes of a character may be in two tokens.
class Decoding::ByteLevelStage : public Stage {
 public:
  using Stage::Stage;
  void bytes(std::string_view bytes) override { token_ += bytes; }
  void end_token() override {
    const auto bytes = bytes_of_byte_level(token_);
    next().bytes(bytes ? *bytes : token_);  // not of the alphabet: plain text
    token_.clear();
  }
  void finish() override {
    next().end_token();
    next().finish();
  }

 private:
  std::string token_;
};

// A run of byte tokens becomes one token. If the run is not UTF-8, Hugging Face replaces each byte
// by U+FFFD. Here the bytes are passed on; a caller that needs valid text replaces them.
class Decoding::ByteFallbackStage : public Stage {
 public:
  using Stage::Stage;
  void bytes(std::string_view bytes) override { token_ += bytes; }
  void end_token() override {
    if (const auto byte = byte_of_token(token_)) {
      next().bytes(std::string(1, static_cast<char>(*byte)));
      within_run_ = true;
    } else {
      end_run();
      next().bytes(token_);
      next().end_token();
    }
    token_.clear();
  }
  void finish() override {
    end_run();
    next().finish();
  }

 private:
  void end_run() {
    if (within_run_) next().end_token();
    within_run_ = false;
  }

  std::string token_;
  bool within_run_ = false;
};

class Decoding::ReplaceStage : public Stage {
 public:
  ReplaceStage(Stage* next, Decoder::Replace step, const GrowthLimit& limit)
      : Stage(next), step_(std::move(step)), limit_(limit) {}

  void bytes(std::string_view bytes) override {
    held_ += bytes;
    const std::string& content = first_token_ ? step_.content_in_first : step_.content;
    std::size_t done = 0;
    for (std::size_t found; (found = held_.find(step_.pattern, done)) != std::string::npos;) {
      pass_on(done, found);
      send(content);
      done = found + step_.pattern.size();
    }
    // Keep a beginning of a match at the end.
    const std::size_t keep = begun(std::string_view(held_).substr(done), step_.pattern);
    pass_on(done, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
  }
  void end_token() override {
    pass_on(0, held_.size());
    held_.clear();
    next().end_token();
    first_token_ = false;
  }
  void finish() override { next().finish(); }

 private:
  void pass_on(std::size_t begin, std::size_t end) {
    if (begin != end) send(std::string_view(held_).substr(begin, end - begin));
  }
  void send(std::string_view bytes) {
    sent_ += bytes.size();
    limit_.check("Replace", sent_);
    next().bytes(bytes);
  }

  Decoder::Replace step_;
  const GrowthLimit& limit_;
  std::size_t sent_ = 0;
  std::string held_;
  bool first_token_ = true;
};

class Decoding::StripStage : public Stage {
 public:
  StripStage(Stage* next, Decoder::Strip step)
      : Stage(next), step_(std::move(step)), to_strip_(step_.start) {}

  void bytes(std::string_view bytes) override {
    held_ += bytes;
    const std::string_view character = step_.character;
    while (to_strip_ > 0) {
      if (held_.starts_with(character)) {
        held_.erase(0, character.size());
        --to_strip_;
      } else if (character.starts_with(held_)) {
        return;  // it may still become one
      } else {
        to_strip_ = 0;
      }
    }
    // Pass on all but characters at the end that may be stripped, and a beginning of such a
    // character.
    if (step_.stop == 0) {
      pass_on(held_.size());
      return;
    }
    std::size_t rest = held_.size() - begun(held_, character);
    for (std::size_t n = 0; n < step_.stop && ends_with_character(rest); ++n) {
      rest -= character.size();
    }
    pass_on(rest);
  }
  void end_token() override {
    std::size_t rest = held_.size();
    for (std::size_t n = 0; n < step_.stop && ends_with_character(rest); ++n) {
      rest -= step_.character.size();
    }
    pass_on(rest);
    held_.clear();
    to_strip_ = step_.start;
    next().end_token();
  }
  void finish() override { next().finish(); }

 private:
  bool ends_with_character(std::size_t end) const {
    return std::string_view(held_).substr(0, end).ends_with(step_.character);
  }
  void pass_on(std::size_t end) {
    if (end > 0) next().bytes(std::string_view(held_).substr(0, end));
    held_.erase(0, end);
  }

  Decoder::Strip step_;
  std::size_t to_strip_;  // at the beginning of this token
  std::string held_;
};

class Decoding::DropFirstStage : public Stage {
 public:
  DropFirstStage(Stage* next, Decoder::DropFirst step) : Stage(next), step_(std::move(step)) {}

  void bytes(std::string_view bytes) override {
    if (dropping_) {
      held_ += bytes;
    } else {
      next().bytes(bytes);
    }
  }
  void end_token() override {
    if (dropping_) {
      const bool drops = held_.starts_with(step_.text);
      const std::string_view rest = std::string_view(held_).substr(drops ? step_.text.size() : 0);
      if (!rest.empty() || (drops && !step_.until_any)) dropping_ = false;
      if (!rest.empty()) next().bytes(rest);
      held_.clear();
    }
    next().end_token();
  }
  void finish() override { next().finish(); }

 private:
  Decoder::DropFirst step_;
  std::string held_;
  bool dropping_ = true;
};

Decoding::Decoding(const Decoder& decoder)
    : limit_(std::make_unique<GrowthLimit>(decoder.where())) {
  auto output = std::make_unique<Output>();
  output_ = output.get();
  stages_.push_back(std::move(output));
  const auto& steps = decoder.steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    Stage* next = stages_.back().get();
    std::unique_ptr<Stage> stage;
    if (std::holds_alternative<Decoder::Join>(*step)) stage = std::make_unique<JoinStage>(next);
    if (std::holds_alternative<Decoder::Fuse>(*step)) stage = std::make_unique<FuseStage>(next);
    if (std::holds_alternative<Decoder::ByteLevel>(*step)) {
      stage = std::make_unique<ByteLevelStage>(next);
    }
    if (std::holds_alternative<Decoder::ByteFallback>(*step)) {
      stage = std::make_unique<ByteFallbackStage>(next);
    }
    if (const auto* replace = std::get_if<Decoder::Replace>(&*step)) {
      stage = std::make_unique<ReplaceStage>(next, *replace, *limit_);
    }
    if (const auto* strip = std::get_if<Decoder::Strip>(&*step)) {
      stage = std::make_unique<StripStage>(next, *strip);
    }
    if (const auto* drop = std::get_if<Decoder::DropFirst>(&*step)) {
      stage = std::make_unique<DropFirstStage>(next, *drop);
    }
    stages_.push_back(std::move(stage));
  }
}

Decoding::Decoding(Decoding&&) noexcept = default;
Decoding& Decoding::operator=(Decoding&&) noexcept = default;
Decoding::~Decoding() = default;

void Decoding::push(std::string_view token) {
  limit_->add(token.size() + 1);  // 1: a step may put a space between tokens
  stages_.back()->bytes(token);
  stages_.back()->end_token();
}

void Decoding::finish() { stages_.back()->finish(); }

std::string Decoding::take() { return output_->take(); }

}  // namespace stagecraft
