#include "text/subwords/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the worst token, as in both libraries

// A score may be an integer in JSON.
double read_score(const JsonNode& node) {
  const double score = node.number();
  if (!std::isfinite(score)) node.refuse("a finite number");
  return score;
}

}  // namespace

Unigram::Unigram(const JsonNode& model) : unknown_may_be_token_(true) {
  byte_fallback_ = model.boolean_or("byte_fallback", false);
  const JsonNode vocab = model.at("vocab");
  where_ = model.where() + ".unk_id";

  std::vector<std::string_view> texts;
  std::vector<std::pair<std::string_view, TokenId>> spelling;
  double smallest = std::numeric_limits<double>::infinity();
  for (const JsonNode entry : vocab.elements()) {
    if (!entry.is_array() || entry.size() != 2) entry.refuse("a token and its score");
    auto element = entry.elements().begin();
    const std::string_view text = (*element).string();
    if (text.size() > kMaxTokenBytes) {
      (*element).refuse(fmt::format("at most {} bytes", kMaxTokenBytes),
                        fmt::format("{}", text.size()));
    }
    ++element;
    scores_.push_back(read_score(*element));
    smallest = std::min(smallest, scores_.back());
    if (!text.empty()) spelling.emplace_back(text, static_cast<TokenId>(texts.size()));
    texts.push_back(text);
  }
  vocabulary_ = Vocabulary::of(texts, vocab.where());
  trie_ = ByteTrie(std::move(spelling));
  byte_tokens_ = ByteTokens(vocabulary_);
  unknown_score_ = smallest - kUnknownPenalty;
  if (const auto id = model.find("unk_id")) {
    if (id->integer() < 0 || static_cast<std::uint64_t>(id->integer()) >= texts.size()) {
      id->refuse(fmt::format("an id of the vocabulary (of {} tokens)", texts.size()));
    }
    unknown_id_ = static_cast<TokenId>(id->integer());
  }
}

Unigram::Unigram(const ScoredVocabulary& model)
    : vocabulary_(model.vocabulary()),
      unknown_id_(model.unknown_id),
      byte_tokens_(vocabulary_),
      byte_fallback_(model.byte_fallback),
      in_float_(true) {
  float smallest = std::numeric_limits<float>::max();
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].kind != TokenKind::Normal) continue;
    smallest = std::min(smallest, model.scores[id]);
  }
  unknown_score_ = smallest - static_cast<float>(kUnknownPenalty);

  std::vector<std::pair<std::string_view, TokenId>> spelling;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& [text, kind] = model.pieces[id];
    scores_.push_back(model.scores[id]);
    if (kind == TokenKind::UserDefined) {  // better than any other tokens with this text
      scores_.back() = 0.1f * static_cast<float>(text.size() - 1);
    }
    if (kind == TokenKind::Normal || kind == TokenKind::UserDefined) {
      spelling.emplace_back(text, static_cast<TokenId>(id));
    }
  }
  trie_ = ByteTrie(std::move(spelling));
}

// The same as encode_optimized of tokenizers' models/unigram and EncodeOptimized of sentencepiece's
// unigram_model.cc (version 0.2.3, in which every sum is rounded to float).
std::vector<Unigram::Node> Unigram::best_ways(const Forbidden& forbidden,
                                              std::string_view piece) const {
  std::vector<Node> nodes(piece.size() + 1);
  const auto rounded = [this](double score) {
    return in_float_ ? static_cast<double>(static_cast<float>(score)) : score;
  };
  const auto offer = [&](std::size_t begin, std::size_t end, TokenId id, double score) {
    Node& node = nodes[end];
    if (node.begin >= 0 && !(score > node.score)) return;
    node = {score, static_cast<std::int32_t>(begin), id};
  };
  for (std::size_t begin = 0; begin < piece.size();) {
    const double before = nodes[begin].score;
    const std::size_t character = first_code_point(piece.substr(begin)).length;
    bool has_character = false;
    trie_.prefixes(piece.substr(begin), [&](std::size_t length, TokenId id) {
      if (forbidden && forbidden(id)) return;
      offer(begin, begin + length, id, rounded(scores_[static_cast<std::size_t>(id)] + before));
      if (length == character) has_character = true;
    });
    if (!has_character) {
      offer(begin, begin + character, kUnknown, rounded(unknown_score_ + before));
    }
    begin += character;
  }
  return nodes;
}

void Unigram::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  encode_without(nullptr, piece, ids);
}

void Unigram::encode_without(const Forbidden& forbidden, std::string_view piece,
                             std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  check_size(piece);
  const std::vector<Node> nodes = best_ways(forbidden, piece);
  struct Token {
    std::size_t begin, end;
    TokenId id;
  };
  std::vector<Token> tokens;  // from last to first; unknown ones in a row are joined
  for (std::size_t end = piece.size(); end > 0;) {
    const auto begin = static_cast<std::size_t>(nodes[end].begin);
    const TokenId id = nodes[end].id == unknown_id_ ? kUnknown : nodes[end].id;
    if (id == kUnknown && !tokens.empty() && tokens.back().id == kUnknown) {
      tokens.back().begin = begin;
    } else {
      tokens.push_back({begin, end, id});
    }
    end = begin;
  }
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    if (token->id == kUnknown) {
      append_unknown(forbidden, piece.substr(token->begin, token->end - token->begin), ids);
    } else {
      ids.push_back(token->id);
    }
  }
}

void Unigram::append_unknown(const Forbidden& forbidden, std::string_view text,
                             std::vector<TokenId>& ids) const {
  if (unknown_may_be_token_) {
    if (const auto id = vocabulary_.find(text); id && !(forbidden && forbidden(*id))) {
      ids.push_back(*id);
      return;
    }
  }
  if (byte_fallback_ && byte_tokens_.spell(text, [&](TokenId id) { ids.push_back(id); })) return;
  if (!unknown_id_) {
    throw Error("{}: expected the id of the unknown token for '{}', found null", where_,
                printable(text, 40));
  }
  ids.push_back(*unknown_id_);
}

}  // namespace stagecraft
