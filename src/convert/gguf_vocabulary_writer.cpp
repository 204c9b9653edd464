#include "convert/gguf_vocabulary_writer.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/pre_tokenizers.h"
#include "formats/gguf/tokenizer.h"
#include "text/formats/description_parts.h"
#include "text/subwords/byte_tokens.h"

namespace stagecraft {
namespace {

constexpr float kNoScore = -1e6f;  // for a token that no merge makes

// Texts on which tokenizers differ.
constexpr std::string_view kTexts[] = {
    "Once upon a time, there was a little girl named Lily.",
    "  two  spaces,   three    four and a\ttab\n\nlines \r\n end  ",
    "It's 1234567890 o'clock; they'll pay $3.50 (50%)! I'D say: \"no\"...",
    "naïve café, Übergröße, Ελληνικά, русский текст",
    "עברית, العربية, हिन्दी, 中文字符，日本語です。한국어",
    "emoji 😀👩‍👩‍👧‍👦🇩🇪 and x²+y₃ ½ ∑∂ — “quotes” … ",
    "def f(x):\n    return x_1 + camelCase // 2 # <b>not</b>\n\t\tif (a&&b) {c[0]=~d;}",
    "http://example.org/?q=a%20b&c=d#e user@example.org 2026-11-20T12:34:56Z",
    "AAAAaaaa0000!!!!----____====    ",
    "a",
    " ",
    "\n",
    "é",
    "▁",
    "\xe2\x80\x8b",
    "\x7f\x01",
};

bool is_true(const JsonNode& object, std::string_view key) { return object.boolean_or(key, false); }

std::string type_of(const std::optional<JsonNode>& part) {
  if (!part) return "null";
  const auto type = part->find("type");
  return type ? std::string(type->string()) : "none";
}

// The type of a component and the types inside it: "Sequence(Digits, ByteLevel)".
std::string types_of(const std::optional<JsonNode>& part) {
  std::string text = type_of(part);
  if (text != "Sequence") return text;
  std::string inner;
  for (const std::string_view key : {"normalizers", "pretokenizers"}) {
    const auto list = part->find(key);
    if (!list) continue;
    for (const JsonNode element : list->elements()) {
      inner += (inner.empty() ? "" : ", ") + types_of(element);
    }
  }
  return text + "(" + inner + ")";
}

// ---- how text is cut ----------------------------------------------------------------------------

// A normalizer or pre_tokenizer without the options that do not affect the ids.
nlohmann::json essence(nlohmann::json part) {
  if (!part.is_object()) return part;
  for (const char* list : {"normalizers", "pretokenizers"}) {
    if (!part.contains(list)) continue;
    nlohmann::json flat = nlohmann::json::array();
    for (const nlohmann::json& inner : part[list]) {
      const nlohmann::json element = essence(inner);
      if (element.is_array()) {
        flat.insert(flat.end(), element.begin(), element.end());
      } else {
        flat.push_back(element);
      }
    }
    return flat.size() == 1 ? flat[0] : flat;
  }
  part.erase("trim_offsets");
  if (!part.value("invert", false)) part.erase("invert");
  if (part.value("type", "") == "ByteLevel" && !part.contains("use_regex")) {
    part["use_regex"] = true;
  }
  return part;
}

// The name in GGUF for how this tokenizer cuts text; "" if there is none.
std::string_view pre_name(JsonNode tokenizer) {
  const auto part = [&](const char* name) {
    const auto found = tokenizer.find(name);
    return essence(found ? json_value(json_text(*found)) : nlohmann::json());
  };
  const nlohmann::json normalizer = part("normalizer"), pre_tokenizer = part("pre_tokenizer");
  const bool ignore_merges = tokenizer.at("model").boolean_or("ignore_merges", false);
  for (const std::string_view name : gguf_pre_tokenizer_names()) {
    const GgufPreTokenizer& pre = *find_gguf_pre_tokenizer(name);
    if (pre.ignore_merges == ignore_merges && essence(json_value(pre.normalizer)) == normalizer &&
        essence(json_value(pre.pre_tokenizer)) == pre_tokenizer) {
      return name;
    }
  }
  return "";
}

// ---- tokens -------------------------------------------------------------------------------------

struct TokenTable {
  std::vector<std::string> texts;   // by id
  std::vector<std::int32_t> kinds;  // TokenKind
  std::vector<std::string> merges;
  std::map<std::string, std::size_t, std::less<>> ids;
};

std::size_t checked_id(const JsonNode& node, std::int64_t id, std::size_t n_rows) {
  if (id >= 0 && static_cast<std::size_t>(id) < n_rows) return static_cast<std::size_t>(id);
  node.refuse(fmt::format("an id below {} (the number of rows of the embedding)", n_rows),
              fmt::format("{}", id));
}

TokenTable read_tokens(const JsonNode& root, std::size_t n_rows) {
  const JsonNode model = root.at("model");
  const auto unknown = model.find("unk_token");
  TokenTable vocabulary;
  for (std::size_t i = 0; i < n_rows; ++i) vocabulary.texts.push_back(fmt::format("[PAD{}]", i));
  vocabulary.kinds.assign(n_rows, static_cast<std::int32_t>(TokenKind::Unused));
  const auto set = [&](std::size_t id, std::string_view text, TokenKind kind) {
    vocabulary.texts[id] = text;
    vocabulary.kinds[id] = static_cast<std::int32_t>(kind);
    vocabulary.ids.insert_or_assign(std::string(text), id);
  };
  const bool in_bytes = is_true(model, "byte_fallback");
  for (const JsonNode entry : model.at("vocab").members()) {
    const std::size_t id = checked_id(entry, entry.integer(), n_rows);
    const bool is_byte = in_bytes && byte_of_token(entry.key());
    set(id, entry.key(), is_byte ? TokenKind::Byte : TokenKind::Normal);
  }
  if (const auto added = root.find("added_tokens")) {
    for (const JsonNode token : added->elements()) {
      const JsonNode content = token.at("content");
      const std::size_t id = checked_id(token, token.at("id").integer(), n_rows);
      for (const std::string_view flag : {"lstrip", "rstrip", "single_word"}) {
        if (is_true(token, flag)) {
          token.refuse(fmt::format("'{}' to be false (GGUF cannot express it)", flag), "true");
        }
      }
      const bool special = is_true(token, "special");
      set(id, content.string(), special ? TokenKind::Control : TokenKind::UserDefined);
    }
  }
  if (unknown && in_bytes) {
    if (const auto found = vocabulary.ids.find(unknown->string()); found != vocabulary.ids.end()) {
      vocabulary.kinds[found->second] = static_cast<std::int32_t>(TokenKind::Unknown);
    }
  }
  for (const JsonNode merge : model.at("merges").elements()) {
    if (merge.is_string()) {
      if (merge.string().starts_with("#version")) continue;
      vocabulary.merges.emplace_back(merge.string());
    } else {
      auto element = merge.elements().begin();
      const std::string left((*element).string());
      vocabulary.merges.push_back(left + " " + std::string((*++element).string()));
    }
  }
  return vocabulary;
}

// Per token: minus the rank of the first merge that makes it.
std::vector<float> scores_of(const TokenTable& vocabulary) {
  std::vector<float> scores(vocabulary.texts.size(), kNoScore);
  for (std::size_t rank = vocabulary.merges.size(); rank-- > 0;) {
    std::string text = vocabulary.merges[rank];
    text.erase(text.find(' '), 1);
    if (const auto found = vocabulary.ids.find(text); found != vocabulary.ids.end()) {
      scores[found->second] = -static_cast<float>(rank);
    }
  }
  return scores;
}

// ---- sentencepiece ------------------------------------------------------------------------------

// Whether a space is put before a text; nullopt if spaces are not marked as in sentencepiece.
std::optional<bool> marks_spaces(const JsonNode& root) {
  const auto normalizer = root.find("normalizer");
  const auto pre_tokenizer = root.find("pre_tokenizer");
  if (pre_tokenizer && type_of(pre_tokenizer) == "Metaspace" && !normalizer) {
    const auto scheme = pre_tokenizer->find("prepend_scheme");
    return scheme ? scheme->string() != "never"
                  : pre_tokenizer->boolean_or("add_prefix_space", true);
  }
  if (pre_tokenizer || !normalizer) return std::nullopt;
  const std::string types = types_of(normalizer);
  if (types != "Replace" && types != "Sequence(Replace)" && types != "Sequence(Prepend, Replace)") {
    return std::nullopt;
  }
  return types == "Sequence(Prepend, Replace)";
}

// ---- tokens around a text -----------------------------------------------------------------------

std::optional<TokenId> find_special(const SpecialTokens& special, std::string_view name,
                                    const Tokenizer& tokenizer) {
  const auto found = std::ranges::find(special, name, &SpecialTokens::value_type::first);
  return found == special.end() ? std::nullopt : tokenizer.id_of(found->second);
}

// The tokens around every text, those that end a text, and those of the chat template. A reader
// knows only one "bos" and one "eos": the tokens around a text take precedence.
void add_frame(GgufWriter& writer, const Tokenizer& tokenizer, std::span<const TokenId> eos_ids,
               const SpecialTokens& special, const std::string& where) {
  const auto plain = tokenizer.encode("a", {});
  const auto framed = tokenizer.encode("a", {.add_special = true});
  const auto at = std::ranges::search(framed, plain).begin();
  if (at == framed.end()) {
    throw Error("{}: post_processor: expected tokens before and after a text, found a change of it",
                where);
  }
  const auto before = static_cast<std::size_t>(at - framed.begin());
  const std::size_t after = framed.size() - plain.size() - before;
  if (before > 1 || after > 1) {
    throw Error(
        "{}: post_processor: expected at most one token before a text and one after it (GGUF "
        "cannot express more), found {} and {}",
        where, before, after);
  }
  writer.add("tokenizer.ggml.add_bos_token", before == 1);
  std::optional<TokenId> begin = find_special(special, "bos_token", tokenizer);
  if (before == 1) begin = framed.front();
  if (begin) writer.add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*begin));
  std::vector<TokenId> ends(eos_ids.begin(), eos_ids.end());
  std::optional<TokenId> end = find_special(special, "eos_token", tokenizer);
  if (after == 1) {
    writer.add("tokenizer.ggml.add_eos_token", true);
    end = framed.back();
  }
  if (end) {
    std::erase(ends, *end);
    ends.insert(ends.begin(), *end);
  }
  add_gguf_end_tokens(writer, ends, where);
  if (const auto padding = find_special(special, "pad_token", tokenizer)) {
    writer.add("tokenizer.ggml.padding_token_id", static_cast<std::uint32_t>(*padding));
  }
}

// Reads the written keys and compares the ids. Returns the special tokens before which or after
// which a text becomes other tokens: tokenizer.json can look for them in normalized text.
std::vector<std::string> check_same_ids(const GgufWriter& pairs, const Tokenizer& tokenizer,
                                        const std::string& where) {
  const std::string file = pairs.header_without_tensors();
  ByteReader reader({reinterpret_cast<const std::byte*>(file.data()), file.size()}, where);
  reader.take(16, "header");  // magic, version, number of tensors
  const GgufMetadata metadata(reader, reader.number<std::uint64_t>("number of metadata pairs"));
  const Tokenizer ours = Tokenizer::read(describe_gguf_tokenizer(metadata));
  const auto compare = [&](std::string_view text) {
    if (utf8_error_offset(text) != std::string_view::npos) return;
    for (const bool special : {false, true}) {
      const Tokenizer::EncodeOptions options = {.parse_special = special, .add_special = special};
      if (tokenizer.encode(text, options) == ours.encode(text, options)) continue;
      throw Error(
          "{}: its tokenizer cannot be expressed in GGUF: '{}' would become other tokens "
          "(--without-tokenizer writes only the weights)",
          where, printable(text, 60));
    }
  };
  for (const std::string_view text : kTexts) compare(text);
  std::vector<std::string_view> specials;
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (tokenizer.is_special(token)) specials.push_back(tokenizer.token_of(token));
  }
  // Tokens that contain the text of a special token are not compared: they are useless, and get
  // lost.
  const auto spells_special = [&](std::string_view text) {
    return std::ranges::any_of(specials, [&](std::string_view special) {
      return text.find(special) != std::string_view::npos;
    });
  };
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (tokenizer.token_of(token).empty() || spells_special(tokenizer.token_of(token))) continue;
    compare(tokenizer.decode(std::span(&token, 1)));
  }
  std::vector<std::string> differ;
  for (const std::string_view special : specials) {
    const std::string text = fmt::format("a{}a", special);
    if (tokenizer.encode(text, {.parse_special = true}) ==
        ours.encode(text, {.parse_special = true}))
      continue;
    differ.emplace_back(special);
  }
  return differ;
}

}  // namespace

void add_gguf_end_tokens(GgufWriter& writer, std::span<const TokenId> eos_ids,
                         const std::string& where) {
  constexpr std::array<std::string_view, 3> kNames = {"eos", "eot", "eom"};
  if (eos_ids.size() > kNames.size()) {
    throw Error(
        "{}: expected at most 3 tokens that end a text (GGUF has no names for more), found {}",
        where, eos_ids.size());
  }
  for (std::size_t i = 0; i < eos_ids.size(); ++i) {
    writer.add(fmt::format("tokenizer.ggml.{}_token_id", kNames[i]),
               static_cast<std::uint32_t>(eos_ids[i]));
  }
}

std::vector<std::string> add_gguf_vocabulary(GgufWriter& writer, const SourceTokenizer& source,
                                             std::size_t n_rows, std::span<const TokenId> eos_ids) {
  const std::string& where = source.where;
  const JsonNode root = source.description.root();
  const JsonNode model = root.at("model");
  if (type_of(model) != "BPE" && type_of(model) != "none") {
    throw Error("{}: its tokenizer cannot be expressed in GGUF: a model of type {}", where,
                printable(type_of(model)));
  }
  const TokenTable vocabulary = read_tokens(root, n_rows);
  GgufWriter pairs;  // checked alone before `writer` changes
  const auto add_to = [&](GgufWriter& to) {
    if (const auto space_first = marks_spaces(root)) {
      to.add("tokenizer.ggml.model", "llama");
      to.add("tokenizer.ggml.pre", "default");
      to.add("tokenizer.ggml.add_space_prefix", *space_first);
      to.add("tokenizer.ggml.scores", scores_of(vocabulary));
      if (const auto unknown = model.find("unk_token")) {
        const auto found = vocabulary.ids.find(unknown->string());
        if (found != vocabulary.ids.end()) {
          to.add("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(found->second));
        }
      }
    } else {
      const std::string_view pre = pre_name(root);
      if (pre.empty()) {
        throw Error(
            "{}: its tokenizer cannot be expressed in GGUF, which has no name for the "
            "normalizer {} with the pre_tokenizer {}",
            where, types_of(root.find("normalizer")), types_of(root.find("pre_tokenizer")));
      }
      to.add("tokenizer.ggml.model", "gpt2");
      to.add("tokenizer.ggml.pre", pre);
      to.add("tokenizer.ggml.merges", vocabulary.merges);
    }
    to.add("tokenizer.ggml.tokens", vocabulary.texts);
    to.add("tokenizer.ggml.token_type", vocabulary.kinds);
    add_frame(to, source.tokenizer, eos_ids, source.special_tokens, where);
  };
  add_to(pairs);
  std::vector<std::string> differ = check_same_ids(pairs, source.tokenizer, where);
  add_to(writer);
  return differ;
}

}  // namespace stagecraft
