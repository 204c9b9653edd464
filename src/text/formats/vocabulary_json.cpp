#include "text/formats/vocabulary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

// Of a scored token: all ways to cut it in two are tried. Real ones have 16 characters.
constexpr std::size_t kMaxScoredBytes = 256;
// All those ways, written down; Llama 2's take a fortieth of it.
constexpr std::size_t kMaxScoredMergeBytes = std::size_t{32} << 20;

struct Merge {
  std::string_view left, right;
  double score;
  std::size_t left_length, right_length;  // in characters
};

// Sentencepiece merges whichever neighbours make the token with the best score. As a list of
// merges: all ways to cut each token in two others, the best first; of equal ones in the order in
// which Hugging Face's conversion has them.
std::vector<Merge> merges_by_score(const ScoredVocabulary& vocabulary) {
  const std::vector<VocabularyToken>& tokens = vocabulary.tokens;
  const std::vector<double>& scores = vocabulary.scores;
  std::unordered_map<std::string_view, std::size_t> index;  // of the tokens' texts
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::Normal) index.emplace(tokens[i].text, i);
  }
  std::vector<Merge> merges;
  std::size_t n_bytes = 0;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, Merge>> cuts;  // by the parts' ids
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::Normal) continue;
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
      throw Error("{}: expected tokens that can be merged in fewer ways, found an array of {}",
                  vocabulary.tokens_where, tokens.size());
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) >
           std::tuple(b.score, b.left_length, b.right_length);
  });
  return merges;
}

}  // namespace

bool VocabularyToken::is_added() const {
  return kind == TokenKind::Unknown || kind == TokenKind::Control || kind == TokenKind::UserDefined;
}

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

void keep_ids_of_added(const std::vector<VocabularyToken>& tokens,
                       std::vector<bool>& in_vocabulary) {
  bool followed = false;
  for (std::size_t i = tokens.size(); i-- > 0;) {
    if (followed && tokens[i].is_added()) in_vocabulary[i] = true;
    followed = followed || in_vocabulary[i];
  }
}

std::string vocab_json(const std::vector<VocabularyToken>& tokens,
                       const std::vector<bool>& in_vocabulary) {
  std::string json = "{";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!in_vocabulary[i]) continue;
    if (json.size() > 1) json += ',';
    append_quoted(json, tokens[i].text);
    json += fmt::format(":{}", i);
  }
  return json + "}";
}

std::string added_tokens_json(const std::vector<VocabularyToken>& tokens) {
  std::string json = "[";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is_added()) continue;
    if (json.size() > 1) json += ',';
    json +=
        fmt::format(R"({{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,)"
                    R"("normalized":false,"special":{}}})",
                    i, quoted(tokens[i].text), tokens[i].kind != TokenKind::UserDefined);
  }
  return json + "]";
}

std::string post_processor_json(const std::vector<VocabularyToken>& tokens,
                                std::optional<std::size_t> begin, std::optional<std::size_t> end) {
  if (!begin && !end) return "null";
  std::string single = R"({"Sequence":{"id":"A","type_id":0}})";
  std::string specials;
  const auto add = [&](std::size_t id) {
    const std::string text = quoted(tokens[id].text);
    if (specials.find(text + ":{") == std::string::npos) {
      specials += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})",
                              specials.empty() ? "" : ",", text, text, id, text);
    }
    return fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})", text);
  };
  if (begin) single = add(*begin) + "," + single;
  if (end) single += "," + add(*end);
  return fmt::format(
      R"({{"type":"TemplateProcessing","single":[{}],"pair":[{},{}],"special_tokens":{{{}}}}})",
      single, single, R"({"Sequence":{"id":"B","type_id":1}})", specials);
}

std::string scored_vocabulary_json(const ScoredVocabulary& vocabulary) {
  const std::vector<VocabularyToken>& tokens = vocabulary.tokens;
  const std::vector<double>& scores = vocabulary.scores;
  std::vector<bool> in_vocabulary(tokens.size());
  std::optional<std::size_t> unknown = vocabulary.unknown;
  bool has_bytes = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenKind kind = tokens[i].kind;
    in_vocabulary[i] =
        kind == TokenKind::Normal || kind == TokenKind::Byte || kind == TokenKind::Unknown;
    if (kind == TokenKind::Byte) has_bytes = true;
    if (kind == TokenKind::Unknown && !unknown) unknown = i;
    if (kind == TokenKind::Normal && tokens[i].text.size() > kMaxScoredBytes) {
      throw Error("{}: token {}: expected at most {} bytes, found {}", vocabulary.tokens_where, i,
                  kMaxScoredBytes, tokens[i].text.size());
    }
    if (!(scores[i] == scores[i])) {
      throw Error("{}: token {}: expected a number, found {}", vocabulary.scores_where, i,
                  scores[i]);
    }
  }
  if (unknown) in_vocabulary[*unknown] = true;
  keep_ids_of_added(tokens, in_vocabulary);
  std::string merges;
  for (const Merge& merge : merges_by_score(vocabulary)) {
    merges += merges.empty() ? "[" : ",[";
    append_quoted(merges, merge.left);
    merges += ',';
    append_quoted(merges, merge.right);
    merges += ']';
  }
  return fmt::format(
      R"({{"version":"1.0","added_tokens":{},"normalizer":{{"type":"Sequence","normalizers":[{})"
      R"({{"type":"Replace","pattern":{{"String":" "}},"content":"▁"}}]}},"pre_tokenizer":null,)"
      R"("post_processor":{},"decoder":{{"type":"Sequence","decoders":[)"
      R"({{"type":"Replace","pattern":{{"String":"▁"}},"content":" "}},{{"type":"ByteFallback"}},)"
      R"({{"type":"Fuse"}}{}]}},"model":{{"type":"BPE","unk_token":{},"fuse_unk":true,)"
      R"("byte_fallback":{},"vocab":{},"merges":[{}]}}}})",
      added_tokens_json(tokens),
      vocabulary.space_first ? R"({"type":"Prepend","prepend":"▁"},)" : "",
      post_processor_json(tokens, vocabulary.begin, vocabulary.end),
      vocabulary.space_first ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "",
      unknown ? quoted(tokens[*unknown].text) : "null", has_bytes,
      vocab_json(tokens, in_vocabulary), merges);
}

}  // namespace stagecraft
