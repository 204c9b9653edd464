#include "text/formats/description_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

// For a scored token, because all ways to cut it in two are tried. Real ones have 16 characters.
constexpr std::size_t kMaxScoredBytes = 256;
// For the list of all these ways; that of Llama 2 takes a fortieth of it.
constexpr std::size_t kMaxScoredMergeBytes = std::size_t{32} << 20;

struct Merge {
  std::string_view left, right;
  double score;
  std::size_t left_length, right_length;  // in characters
};

// Sentencepiece merges the neighbours that make the token with the best score. As a list of merges,
// these are all ways to cut each token into two others, the best score first, and equal scores in
// the order of Hugging Face's conversion.
std::vector<Merge> merges_by_score(const SentencePieceVocabulary& vocabulary) {
  const std::vector<VocabularyToken>& tokens = vocabulary.tokens;
  const std::vector<double>& scores = vocabulary.scores;
  std::unordered_map<std::string_view, std::size_t> index;  // by the text of a token
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::Normal) index.emplace(tokens[i].text, i);
  }
  std::vector<Merge> merges;
  std::size_t n_bytes = 0;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, Merge>> cuts;  // by the parts' ids
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::Normal) continue;
    const std::string_view text = tokens[i].text;
    const std::size_t n_characters = count_characters(text);
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
      throw Error("{}: expected tokens with fewer possible merges, found an array of {}",
                  vocabulary.tokens_where, tokens.size());
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) >
           std::tuple(b.score, b.left_length, b.right_length);
  });
  return merges;
}

void add_merges(JsonBuilder& json, const SentencePieceVocabulary& vocabulary) {
  if (vocabulary.merges) {
    for (const std::string_view merge : *vocabulary.merges) json.text(merge);
    return;
  }
  for (const Merge& merge : merges_by_score(vocabulary)) {
    json.array([&] {
      json.text(merge.left);
      json.text(merge.right);
    });
  }
}

std::int64_t as_id(std::size_t index) { return static_cast<std::int64_t>(index); }

}  // namespace

void keep_ids_of_added(const std::vector<VocabularyToken>& tokens,
                       std::vector<bool>& in_vocabulary) {
  bool followed = false;
  for (std::size_t i = tokens.size(); i-- > 0;) {
    if (followed && tokens[i].is_added()) in_vocabulary[i] = true;
    followed = followed || in_vocabulary[i];
  }
}

void add_vocab(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
               const std::vector<bool>& in_vocabulary) {
  json.object([&] {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (in_vocabulary[i]) json.key(tokens[i].text).integer(as_id(i));
    }
  });
}

void add_added_token(JsonBuilder& json, std::int64_t id, const AddedTokenDescription& token) {
  json.object([&] {
    json.key("id").integer(id);
    json.key("content").text(token.content);
    json.key("normalized").boolean(false);
    json.key("special").boolean(token.special);
    json.key("lstrip").boolean(token.lstrip);
    json.key("rstrip").boolean(token.rstrip);
    json.key("single_word").boolean(token.single_word);
  });
}

void add_added_tokens(JsonBuilder& json, const std::vector<VocabularyToken>& tokens) {
  json.array([&] {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].is_added()) continue;
      add_added_token(
          json, as_id(i),
          {.content = tokens[i].text, .special = tokens[i].kind != TokenKind::UserDefined});
    }
  });
}

void add_token_text(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                    std::optional<std::size_t> id) {
  if (id) return json.text(tokens[*id].text);
  json.null();
}

void add_post_processor(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                        std::optional<std::size_t> begin, std::optional<std::size_t> end) {
  if (!begin && !end) return json.null();
  const auto add_token = [&](std::optional<std::size_t> id) {
    if (!id) return;
    json.object([&] {
      json.key("SpecialToken").object([&] {
        json.key("id").text(tokens[*id].text);
        json.key("type_id").integer(0);
      });
    });
  };
  const auto add_text = [&] {
    add_token(begin);
    json.json(R"({"Sequence":{"id":"A","type_id":0}})");
    add_token(end);
  };
  const auto add_special = [&](std::size_t id) {
    json.key(tokens[id].text).object([&] {
      json.key("id").text(tokens[id].text);
      json.key("ids").array([&] { json.integer(as_id(id)); });
      json.key("tokens").array([&] { json.text(tokens[id].text); });
    });
  };
  json.object([&] {
    json.key("type").text("TemplateProcessing");
    json.key("single").array(add_text);
    json.key("pair").array([&] {
      add_text();
      json.json(R"({"Sequence":{"id":"B","type_id":1}})");
    });
    json.key("special_tokens").object([&] {
      if (begin) add_special(*begin);
      if (end && (!begin || tokens[*end].text != tokens[*begin].text)) add_special(*end);
    });
  });
}

std::string sentencepiece_normalizer(bool space_first) {
  const std::string prepend = space_first ? R"({"type":"Prepend","prepend":"▁"},)" : "";
  return R"({"type":"Sequence","normalizers":[)" + prepend +
         R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
}

std::string sentencepiece_decoder(bool space_first) {
  const std::string strip =
      space_first ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "";
  return R"({"type":"Sequence","decoders":[)"
         R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
         R"({"type":"ByteFallback"},{"type":"Fuse"})" +
         strip + "]}";
}

Json describe_sentencepiece_vocabulary(const SentencePieceVocabulary& vocabulary) {
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
    // A merge may make a user-defined token, too.
    if (kind == TokenKind::UserDefined && vocabulary.merges) in_vocabulary[i] = true;
    if (vocabulary.merges) continue;
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
  JsonBuilder json(vocabulary.where);
  json.object([&] {
    json.key("version").text("1.0");
    add_added_tokens(json.key("added_tokens"), tokens);
    json.key("normalizer").json(sentencepiece_normalizer(vocabulary.space_first));
    json.key("pre_tokenizer").null();
    add_post_processor(json.key("post_processor"), tokens, vocabulary.begin, vocabulary.end);
    json.key("decoder").json(sentencepiece_decoder(vocabulary.space_first));
    json.key("model").object([&] {
      json.key("type").text("BPE");
      add_token_text(json.key("unk_token"), tokens, unknown);
      json.key("fuse_unk").boolean(true);
      json.key("byte_fallback").boolean(has_bytes);
      add_vocab(json.key("vocab"), tokens, in_vocabulary);
      json.key("merges").array([&] { add_merges(json, vocabulary); });
    });
  });
  return json.take();
}

}  // namespace stagecraft
