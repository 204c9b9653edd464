#include "text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/json_document.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
// Of a scored token: all ways to cut it in two are tried. Real ones have 16 characters.
constexpr std::size_t kMaxScoredBytes = 256;
// All those ways, written down; Llama 2's take a fortieth of it.
constexpr std::size_t kMaxScoredMergeBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxVocabularyBytes = JsonDocument::kMaxBytes / 2;

enum class Kind { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

struct Token {
  std::string_view text;
  Kind kind;

  bool is_added() const {
    return kind == Kind::Unknown || kind == Kind::Control || kind == Kind::UserDefined;
  }
};

// JSON by hand: a vocabulary has hundreds of thousands of texts.
void append_quoted(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  json += '"';
}

std::string quoted(std::string_view text) {
  std::string json;
  append_quoted(json, text);
  return json;
}

// An array of texts that is not too large to be written down once more.
std::vector<std::string_view> read_texts(const GgufMetadata& metadata, std::string_view key) {
  std::vector<std::string_view> texts = metadata.texts(key);
  std::size_t n_bytes = 0;
  for (const std::string_view text : texts) n_bytes += text.size();
  if (n_bytes > kMaxVocabularyBytes) {
    metadata.refuse(key, fmt::format("at most {} bytes of text", kMaxVocabularyBytes));
  }
  return texts;
}

std::vector<Token> read_tokens(const GgufMetadata& metadata) {
  const std::vector<std::string_view> texts = read_texts(metadata, kTokens);
  const std::vector<std::int64_t> types = metadata.integers(kTypes);
  if (texts.empty() || texts.size() > kMaxTokens) {
    metadata.refuse(kTokens, fmt::format("1 to {} tokens", kMaxTokens));
  }
  if (types.size() != texts.size()) {
    metadata.refuse(kTypes, fmt::format("one for each of {} tokens", texts.size()));
  }
  std::vector<Token> tokens(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::int64_t type = types[i];
    if (type < 1 || type > 6) {
      throw Error("{}: '{}': token {}: expected a type from 1 to 6, found {}", metadata.file(),
                  kTypes, i, type);
    }
    if (utf8_error_offset(texts[i]) != std::string_view::npos) {
      throw Error("{}: '{}': token {}: expected UTF-8, found '{}'", metadata.file(), kTokens, i,
                  printable(texts[i], 40));
    }
    tokens[i] = {texts[i], static_cast<Kind>(type)};
    if (texts[i].empty()) tokens[i].kind = Kind::Unused;  // text has no place for it
  }
  return tokens;
}

// Texts of tokens -> their ids.
using Index = std::unordered_map<std::string_view, std::size_t>;

// The "vocab" of the model: what it can spell, by `in_vocabulary`.
std::string vocab_json(const std::vector<Token>& tokens, const std::vector<bool>& in_vocabulary) {
  std::string json = "{";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!in_vocabulary[i]) continue;
    if (json.size() > 1) json += ',';
    append_quoted(json, tokens[i].text);
    json += fmt::format(":{}", i);
  }
  return json + "}";
}

std::string added_tokens_json(const std::vector<Token>& tokens) {
  std::string json = "[";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is_added()) continue;
    if (json.size() > 1) json += ',';
    json +=
        fmt::format(R"({{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,)"
                    R"("normalized":false,"special":{}}})",
                    i, quoted(tokens[i].text), tokens[i].kind != Kind::UserDefined);
  }
  return json + "]";
}

std::optional<std::size_t> find_id(const GgufMetadata& metadata, std::string_view key,
                                   const std::vector<Token>& tokens) {
  return metadata.find_size(key, 0, tokens.size() - 1);
}

// The begin and end tokens that are put around a text, where they are.
std::string post_processor_json(const GgufMetadata& metadata, const std::vector<Token>& tokens,
                                bool adds_bos) {
  std::vector<std::string> single;
  std::string specials;
  const auto add = [&](std::string_view flag, std::string_view key, bool fallback) {
    if (!metadata.flag_or(flag, fallback)) return;
    const auto id = find_id(metadata, key, tokens);
    if (!id) throw Error("{}: '{}' is missing, which '{}' asks for", metadata.file(), key, flag);
    const std::string text = quoted(tokens[*id].text);
    single.push_back(fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})", text));
    if (specials.find(text + ":{") == std::string::npos) {
      specials += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})",
                              specials.empty() ? "" : ",", text, text, *id, text);
    }
  };
  add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", adds_bos);
  single.emplace_back(R"({"Sequence":{"id":"A","type_id":0}})");
  add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false);
  if (single.size() == 1) return "null";
  return fmt::format(R"({{"type":"TemplateProcessing","single":[{}],"special_tokens":{{{}}}}})",
                     fmt::join(single, ","), specials);
}

// ---- model "gpt2" -------------------------------------------------------------------------------

// A byte that has no token is left out, as transformers and llama.cpp do with such a file:
// "tokenizer.ggml.unknown_token_id" is only what a tokenizer_config.json once said.

// An added token is no part of the model's vocabulary, unless something there needs it.
std::vector<bool> byte_level_vocabulary(const GgufMetadata& metadata,
                                        const std::vector<Token>& tokens,
                                        const std::vector<std::string_view>& merges) {
  std::vector<bool> in_vocabulary(tokens.size());
  Index added;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    in_vocabulary[i] = tokens[i].kind == Kind::Normal || tokens[i].kind == Kind::Byte;
    if (tokens[i].is_added()) added.emplace(tokens[i].text, i);
  }
  const auto need = [&](const std::string& text) {
    if (const auto found = added.find(text); found != added.end()) {
      in_vocabulary[found->second] = true;
    }
  };
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::size_t space = merges[i].find(' ');
    if (space == std::string_view::npos || utf8_error_offset(merges[i]) != std::string_view::npos) {
      throw Error("{}: '{}': merge {}: expected two tokens with a space between, found '{}'",
                  metadata.file(), kMerges, i, printable(merges[i], 40));
    }
    const std::string left(merges[i].substr(0, space));
    const std::string right(merges[i].substr(space + 1));
    need(left);
    need(right);
    need(left + right);
  }
  return in_vocabulary;
}

std::string byte_level_json(const GgufMetadata& metadata, const std::vector<Token>& tokens) {
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(metadata.text_or(kPre, "default"));
  if (pre == nullptr) metadata.refuse(kPre, "a way to cut text that is known here");
  const std::vector<std::string_view> merges = read_texts(metadata, kMerges);
  const auto in_vocabulary = byte_level_vocabulary(metadata, tokens, merges);
  std::string merges_json;
  for (const std::string_view merge : merges) {
    if (!merges_json.empty()) merges_json += ',';
    append_quoted(merges_json, merge);
  }
  return fmt::format(
      R"({{"version":"1.0","added_tokens":{},"normalizer":{},"pre_tokenizer":{},)"
      R"("post_processor":{},"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE",)"
      R"("ignore_merges":{},"vocab":{},"merges":[{}]}}}})",
      added_tokens_json(tokens), pre->normalizer, pre->pre_tokenizer,
      post_processor_json(metadata, tokens, pre->adds_bos), pre->ignore_merges,
      vocab_json(tokens, in_vocabulary), merges_json);
}

// ---- model "llama" ------------------------------------------------------------------------------

struct Merge {
  std::string_view left, right;
  double score;
  std::size_t left_length, right_length;  // in characters
};

// Sentencepiece merges whichever neighbours make the token with the best score. As a list of
// merges: all ways to cut each token in two others, the best first; of equal ones in the order in
// which Hugging Face's conversion has them.
std::vector<Merge> merges_by_score(const GgufMetadata& metadata, const std::vector<Token>& tokens,
                                   const std::vector<double>& scores) {
  Index index;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == Kind::Normal) index.emplace(tokens[i].text, i);
  }
  std::vector<Merge> merges;
  std::size_t n_bytes = 0;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, Merge>> cuts;  // by the parts' ids
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Kind::Normal) continue;
    const std::string_view text = tokens[i].text;
    std::size_t n_characters = 0;
    for (std::size_t at = 0; at < text.size(); ++n_characters) {
      at += first_code_point(text.substr(at)).length;
    }
    cuts.clear();
    std::size_t length = 0;
    for (std::size_t at = 0; at < text.size(); ++length) {
      if (at != 0) {
        const auto left = index.find(text.substr(0, at));
        const auto right = left == index.end() ? left : index.find(text.substr(at));
        if (right != index.end()) {
          cuts.push_back({{left->second, right->second},
                          {left->first, right->first, scores[i], length, n_characters - length}});
        }
      }
      at += first_code_point(text.substr(at)).length;
    }
    std::ranges::sort(cuts, {}, [](const auto& cut) { return cut.first; });
    for (const auto& [ids, merge] : cuts) merges.push_back(merge);
    n_bytes += cuts.size() * (text.size() + 8);
    if (n_bytes > kMaxScoredMergeBytes) {
      metadata.refuse(kTokens, "tokens that can be merged in fewer ways");
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) >
           std::tuple(b.score, b.left_length, b.right_length);
  });
  return merges;
}

std::string sentencepiece_json(const GgufMetadata& metadata, const std::vector<Token>& tokens) {
  const std::vector<double> scores = metadata.numbers(kScores);
  if (scores.size() != tokens.size()) {
    metadata.refuse(kScores, fmt::format("one for each of {} tokens", tokens.size()));
  }
  for (const std::string_view key :
       {"tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.remove_extra_whitespaces"}) {
    if (metadata.has(key) && !metadata.is_neutral(key)) {
      metadata.refuse(key, "none (it is not supported)");
    }
  }
  std::vector<bool> in_vocabulary(tokens.size());
  std::optional<std::size_t> unknown = find_id(metadata, "tokenizer.ggml.unknown_token_id", tokens);
  bool has_bytes = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Kind kind = tokens[i].kind;
    in_vocabulary[i] = kind == Kind::Normal || kind == Kind::Byte || kind == Kind::Unknown;
    if (kind == Kind::Byte) has_bytes = true;
    if (kind == Kind::Unknown && !unknown) unknown = i;
    if (kind == Kind::Normal && tokens[i].text.size() > kMaxScoredBytes) {
      throw Error("{}: '{}': token {}: expected at most {} bytes, found {}", metadata.file(),
                  kTokens, i, kMaxScoredBytes, tokens[i].text.size());
    }
    if (!(scores[i] == scores[i])) {
      throw Error("{}: '{}': token {}: expected a number, found {}", metadata.file(), kScores, i,
                  scores[i]);
    }
  }
  if (unknown) in_vocabulary[*unknown] = true;
  std::string merges;
  for (const Merge& merge : merges_by_score(metadata, tokens, scores)) {
    merges += merges.empty() ? "[" : ",[";
    append_quoted(merges, merge.left);
    merges += ',';
    append_quoted(merges, merge.right);
    merges += ']';
  }
  const bool space_first = metadata.flag_or("tokenizer.ggml.add_space_prefix", true);
  return fmt::format(
      R"({{"version":"1.0","added_tokens":{},"normalizer":{{"type":"Sequence","normalizers":[{})"
      R"({{"type":"Replace","pattern":{{"String":" "}},"content":"▁"}}]}},"pre_tokenizer":null,)"
      R"("post_processor":{},"decoder":{{"type":"Sequence","decoders":[)"
      R"({{"type":"Replace","pattern":{{"String":"▁"}},"content":" "}},{{"type":"ByteFallback"}},)"
      R"({{"type":"Fuse"}}{}]}},"model":{{"type":"BPE","unk_token":{},"fuse_unk":true,)"
      R"("byte_fallback":{},"vocab":{},"merges":[{}]}}}})",
      added_tokens_json(tokens), space_first ? R"({"type":"Prepend","prepend":"▁"},)" : "",
      post_processor_json(metadata, tokens, true),
      space_first ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "",
      unknown ? quoted(tokens[*unknown].text) : "null", has_bytes,
      vocab_json(tokens, in_vocabulary), merges);
}

}  // namespace

std::string gguf_tokenizer_json(const GgufMetadata& metadata) {
  const std::string_view model = metadata.text(kModel);
  if (model != "gpt2" && model != "llama") metadata.refuse(kModel, "'gpt2' or 'llama'");
  const std::vector<Token> tokens = read_tokens(metadata);
  return model == "gpt2" ? byte_level_json(metadata, tokens) : sentencepiece_json(metadata, tokens);
}

}  // namespace stagecraft
