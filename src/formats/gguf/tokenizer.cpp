#include "formats/gguf/tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf/pre_tokenizers.h"
#include "text/formats/description_parts.h"

namespace stagecraft {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
constexpr std::size_t kMaxVocabularyBytes = Json::kMaxBytes / 2;

// An array of texts, small enough to be written again as JSON.
std::vector<std::string_view> read_texts(const GgufMetadata& metadata, std::string_view key) {
  std::vector<std::string_view> texts = metadata.texts(key);
  std::size_t n_bytes = 0;
  for (const std::string_view text : texts) n_bytes += text.size();
  if (n_bytes > kMaxVocabularyBytes) {
    metadata.refuse(key, fmt::format("at most {} bytes of text", kMaxVocabularyBytes));
  }
  return texts;
}

std::vector<VocabularyToken> read_tokens(const GgufMetadata& metadata) {
  const std::vector<std::string_view> texts = read_texts(metadata, kTokens);
  const std::vector<std::int64_t> types = metadata.integers(kTokenTypes);
  if (texts.empty() || texts.size() > kMaxTokens) {
    metadata.refuse(kTokens, fmt::format("1 to {} tokens", kMaxTokens));
  }
  if (types.size() != texts.size()) {
    metadata.refuse(kTokenTypes, fmt::format("one type for each of {} tokens", texts.size()));
  }
  std::vector<VocabularyToken> tokens(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::int64_t type = types[i];
    if (type < 1 || type > 6) {
      throw Error("{}: '{}': token {}: expected a type from 1 to 6, found {}", metadata.file(),
                  kTokenTypes, i, type);
    }
    if (utf8_error_offset(texts[i]) != std::string_view::npos) {
      throw Error("{}: '{}': token {}: expected UTF-8, found '{}'", metadata.file(), kTokens, i,
                  printable(texts[i], 40));
    }
    tokens[i] = {texts[i], static_cast<TokenKind>(type)};
    if (texts[i].empty()) tokens[i].kind = TokenKind::Unused;  // no text can become it
  }
  return tokens;
}

std::optional<std::size_t> find_id(const GgufMetadata& metadata, std::string_view key,
                                   const std::vector<VocabularyToken>& tokens) {
  return metadata.find_token_id(key, tokens.size());
}

// The token that is put before or after every text, if the file says so.
std::optional<std::size_t> frame_token(const GgufMetadata& metadata,
                                       const std::vector<VocabularyToken>& tokens,
                                       std::string_view flag, std::string_view key,
                                       bool default_value) {
  if (!metadata.flag_or(flag, default_value)) return std::nullopt;
  const auto id = find_id(metadata, key, tokens);
  if (!id) throw Error("{}: '{}' is missing, but '{}' needs it", metadata.file(), key, flag);
  return id;
}
std::optional<std::size_t> begin_token(const GgufMetadata& metadata,
                                       const std::vector<VocabularyToken>& tokens,
                                       bool default_value) {
  return frame_token(metadata, tokens, "tokenizer.ggml.add_bos_token",
                     "tokenizer.ggml.bos_token_id", default_value);
}
std::optional<std::size_t> end_token(const GgufMetadata& metadata,
                                     const std::vector<VocabularyToken>& tokens) {
  return frame_token(metadata, tokens, "tokenizer.ggml.add_eos_token",
                     "tokenizer.ggml.eos_token_id", false);
}

// ---- model "gpt2" -------------------------------------------------------------------------------

// A byte without a token is left out, as transformers and llama.cpp do for such a file.
// "tokenizer.ggml.unknown_token_id" is ignored: it only copies a field of a tokenizer_config.json.

std::vector<std::string_view> read_merges(const GgufMetadata& metadata) {
  const std::vector<std::string_view> merges = read_texts(metadata, kMerges);
  for (std::size_t i = 0; i < merges.size(); ++i) {
    if (merges[i].find(' ') == std::string_view::npos ||
        utf8_error_offset(merges[i]) != std::string_view::npos) {
      throw Error("{}: '{}': merge {}: expected two tokens separated by a space, found '{}'",
                  metadata.file(), kMerges, i, printable(merges[i], 40));
    }
  }
  return merges;
}

// An added token is in the model's vocabulary only if a merge or the numbering needs it.
std::vector<bool> byte_level_vocabulary(const std::vector<VocabularyToken>& tokens,
                                        const std::vector<std::string_view>& merges) {
  std::vector<bool> in_vocabulary(tokens.size());
  std::unordered_map<std::string_view, std::size_t> added;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    in_vocabulary[i] = tokens[i].kind == TokenKind::Normal || tokens[i].kind == TokenKind::Byte;
    if (tokens[i].is_added()) added.emplace(tokens[i].text, i);
  }
  const auto need = [&](const std::string& text) {
    if (const auto found = added.find(text); found != added.end()) {
      in_vocabulary[found->second] = true;
    }
  };
  for (const std::string_view merge : merges) {
    const std::size_t space = merge.find(' ');
    const std::string left(merge.substr(0, space)), right(merge.substr(space + 1));
    need(left);
    need(right);
    need(left + right);
  }
  keep_ids_of_added(tokens, in_vocabulary);
  return in_vocabulary;
}

Json describe_byte_level(const GgufMetadata& metadata, const std::vector<VocabularyToken>& tokens) {
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(metadata.text_or(kPre, "default"));
  if (pre == nullptr) metadata.refuse(kPre, "the name of a pre-tokenizer that this engine knows");
  const std::vector<std::string_view> merges = read_merges(metadata);
  const auto in_vocabulary = byte_level_vocabulary(tokens, merges);
  JsonBuilder json(metadata.file() + ": tokenizer");
  json.object([&] {
    json.key("version").text("1.0");
    add_added_tokens(json.key("added_tokens"), tokens);
    json.key("normalizer").json(pre->normalizer);
    json.key("pre_tokenizer").json(pre->pre_tokenizer);
    add_post_processor(json.key("post_processor"), tokens,
                       begin_token(metadata, tokens, pre->adds_bos), end_token(metadata, tokens));
    json.key("decoder").json(
        R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})");
    json.key("model").object([&] {
      json.key("type").text("BPE");
      json.key("ignore_merges").boolean(pre->ignore_merges);
      add_vocab(json.key("vocab"), tokens, in_vocabulary);
      json.key("merges").array([&] {
        for (const std::string_view merge : merges) json.text(merge);
      });
    });
  });
  return json.take();
}

// ---- models "llama" and "gemma4" ----------------------------------------------------------------

SentencePieceVocabulary sentencepiece_vocabulary(const GgufMetadata& metadata,
                                                 const std::vector<VocabularyToken>& tokens,
                                                 bool space_first) {
  SentencePieceVocabulary vocabulary;
  vocabulary.tokens = tokens;
  vocabulary.unknown = find_id(metadata, "tokenizer.ggml.unknown_token_id", tokens);
  vocabulary.begin = begin_token(metadata, tokens, true);
  vocabulary.end = end_token(metadata, tokens);
  vocabulary.space_first = metadata.flag_or("tokenizer.ggml.add_space_prefix", space_first);
  vocabulary.where = metadata.file() + ": tokenizer";
  vocabulary.tokens_where = fmt::format("{}: '{}'", metadata.file(), kTokens);
  vocabulary.scores_where = fmt::format("{}: '{}'", metadata.file(), kScores);
  return vocabulary;
}

// llama.cpp takes a run of newlines as one token if the vocabulary has it. Gemma's tokenizer.json
// lists these tokens among its added tokens; the GGUF file does not.
Json describe_gemma4(const GgufMetadata& metadata, const std::vector<VocabularyToken>& tokens) {
  SentencePieceVocabulary vocabulary = sentencepiece_vocabulary(metadata, tokens, false);
  for (VocabularyToken& token : vocabulary.tokens) {
    const bool newlines = token.text.find_first_not_of('\n') == std::string_view::npos;
    if (newlines && token.text.size() > 1 && token.kind == TokenKind::Normal) {
      token.kind = TokenKind::UserDefined;
    }
  }
  vocabulary.merges = read_merges(metadata);
  return describe_sentencepiece_vocabulary(vocabulary);
}

Json describe_sentencepiece(const GgufMetadata& metadata,
                            const std::vector<VocabularyToken>& tokens) {
  const std::vector<double> scores = metadata.numbers(kScores);
  if (scores.size() != tokens.size()) {
    metadata.refuse(kScores, fmt::format("one score for each of {} tokens", tokens.size()));
  }
  for (const std::string_view key :
       {"tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.remove_extra_whitespaces"}) {
    if (metadata.has(key) && !metadata.is_neutral(key)) {
      metadata.refuse(key, "none (it is not supported)");
    }
  }
  SentencePieceVocabulary vocabulary = sentencepiece_vocabulary(metadata, tokens, true);
  vocabulary.scores = scores;
  return describe_sentencepiece_vocabulary(vocabulary);
}

}  // namespace

Json describe_gguf_tokenizer(const GgufMetadata& metadata) {
  if (!metadata.has(kTokens) && metadata.text_or(kModel, "none") == "none") {
    // `convert --without-tokenizer` writes such a file.
    throw Error(
        "{}: expected a tokenizer in the file, found none; give the model's tokenizer: --tokenizer "
        "PATH",
        metadata.file());
  }
  const std::string_view model = metadata.text(kModel);
  if (model != "gpt2" && model != "llama" && model != "gemma4") {
    metadata.refuse(kModel, "'gpt2', 'llama' or 'gemma4'");
  }
  const std::vector<VocabularyToken> tokens = read_tokens(metadata);
  if (model == "gpt2") return describe_byte_level(metadata, tokens);
  return model == "llama" ? describe_sentencepiece(metadata, tokens)
                          : describe_gemma4(metadata, tokens);
}

std::string with_gguf_token_keys(std::string_view message, std::string_view file) {
  const std::size_t begin = message.starts_with(file) ? file.size() : 0;
  std::string text(message.substr(begin));
  for (const auto& [path, key] : {std::pair{std::string_view("model.vocab"), kTokens},
                                  {std::string_view("model.merges"), kMerges}}) {
    for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += key.size()) {
      text.replace(at, path.size(), key);
    }
  }
  return std::string(message.substr(0, begin)) + text;
}

}  // namespace stagecraft
