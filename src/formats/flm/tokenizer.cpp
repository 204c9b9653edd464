#include "formats/flm/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "text/formats/description_parts.h"
#include "text/subwords/byte_tokens.h"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 4> kSpecialIds = {"bos_token_id", "eos_token_id",
                                                         "pad_token_id", "unk_token_id"};
constexpr std::array<std::string_view, 4> kSpecialTexts = {"<s>", "</s>", "<unk>", "<pad>"};

std::optional<std::size_t> id_in(const FlmFile& file, std::string_view key) {
  return integer_of<std::size_t>(file.value(key));
}

bool looks_special(std::string_view text) {
  return std::ranges::find(kSpecialTexts, text) != kSpecialTexts.end() ||
         (text.size() > 4 && text.starts_with("<|") && text.ends_with("|>"));
}

// By id; ids without an entry are unused.
std::vector<VocabularyToken> tokens_of(const FlmFile& file) {
  const std::size_t n = file.vocabulary().size();
  const std::size_t end = largest_end_id(n);
  std::vector<VocabularyToken> tokens;
  for (std::size_t i = 0; i < n; ++i) {
    const auto& [text, id] = file.vocabulary()[i];
    if (id >= end) {
      throw Error("{}: token {}: expected an id below {} (for {} tokens), found {}", file.name(), i,
                  end, n, id);
    }
    if (id >= tokens.size()) tokens.resize(id + 1, {"", TokenKind::Unused});
    if (!tokens[id].text.empty()) {
      throw Error("{}: token {}: expected a unique id, found {}, which '{}' also has", file.name(),
                  i, id, printable(tokens[id].text, 40));
    }
    if (utf8_error_offset(text) != std::string_view::npos) {
      throw Error("{}: token {}: expected UTF-8, found '{}'", file.name(), i, printable(text, 40));
    }
    if (!text.empty()) {
      tokens[id] = {text, looks_special(text) ? TokenKind::Control : TokenKind::Normal};
    }
  }
  for (const std::string_view key : kSpecialIds) {
    const auto id = id_in(file, key);
    if (id && *id < tokens.size() && !tokens[*id].text.empty()) {
      tokens[*id].kind = TokenKind::Control;
    }
  }
  return tokens;
}

// `text` as a string literal of Jinja: 'It\'s\n'
std::string jinja_text(std::string_view text) {
  std::string quoted_text = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') quoted_text += '\\';
    quoted_text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return quoted_text + "'";
}

}  // namespace

Json describe_flm_tokenizer(const FlmFile& file) {
  const std::vector<VocabularyToken> tokens = tokens_of(file);
  if (tokens.empty()) throw Error("{}: expected a vocabulary, found none", file.name());
  std::vector<bool> in_vocabulary(tokens.size());
  bool marks = false, bytes = false, alphabet = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    in_vocabulary[i] = tokens[i].kind == TokenKind::Normal;
    marks = marks || tokens[i].text.starts_with("▁");
    alphabet = alphabet || tokens[i].text == "Ġ";
    bytes = bytes || byte_of_token(tokens[i].text);
  }
  std::string normalizer = "null", pre_tokenizer = "null", decoder = R"({"type":"Fuse"})";
  if (marks) {
    normalizer = sentencepiece_normalizer(true);
    decoder = sentencepiece_decoder(true);
  } else if (alphabet) {
    pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
    decoder = R"({"type":"ByteLevel"})";
  } else if (bytes) {
    decoder = R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]})";
  }
  const std::string_view says = file.value("add_bos_token");
  const bool adds_begin = says.empty() ? marks : says == "True" || says == "true" || says == "1";
  std::optional<std::size_t> begin = adds_begin ? id_in(file, "bos_token_id") : std::nullopt;
  if (begin && (*begin >= tokens.size() || tokens[*begin].text.empty())) begin.reset();
  const auto unknown = id_in(file, "unk_token_id");
  const bool has_unknown = unknown && *unknown < tokens.size() && !tokens[*unknown].text.empty();
  if (has_unknown) in_vocabulary[*unknown] = true;
  JsonBuilder json(file.name() + ": tokenizer");
  json.object([&] {
    json.key("version").text("1.0");
    add_added_tokens(json.key("added_tokens"), tokens);
    json.key("normalizer").json(normalizer);
    json.key("pre_tokenizer").json(pre_tokenizer);
    add_post_processor(json.key("post_processor"), tokens, begin, std::nullopt);
    json.key("decoder").json(decoder);
    json.key("model").object([&] {
      json.key("type").text("LongestMatch");
      add_token_text(json.key("unk_token"), tokens, has_unknown ? unknown : std::nullopt);
      add_vocab(json.key("vocab"), tokens, in_vocabulary);
    });
  });
  return json.take();
}

std::string flm_chat_template(const FlmFile& file) {
  const auto none = [&](std::string_view key) { return file.value(key).empty(); };
  if (std::ranges::all_of(FlmFile::kChatKeys, none)) return "";
  const auto text = [&](std::string_view key) { return jinja_text(file.value(key)); };
  return fmt::format(
      "{{% if messages and messages[0]['role'] == 'system' %}}{{{{ messages[0]['content'] }}}}"
      "{{% else %}}{{{{ {} }}}}{{% endif %}}{{% for message in messages %}}"
      "{{% if message['role'] == 'user' %}}{{{{ {} + message['content'] + {} }}}}"
      "{{% elif message['role'] == 'assistant' %}}{{{{ message['content'] + {} }}}}{{% endif %}}"
      "{{% endfor %}}",
      text("pre_prompt"), text("user_role"), text("bot_role"), text("history_sep"));
}

}  // namespace stagecraft
