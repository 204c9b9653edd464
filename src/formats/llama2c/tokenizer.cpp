#include "formats/llama2c/tokenizer.h"

#include <fmt/format.h>

#include <bit>
#include <deque>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "checkpoint/byte_reader.h"
#include "formats/llama2c/file.h"
#include "text/formats/description_parts.h"
#include "text/pipeline/metaspace.h"
#include "text/subwords/byte_tokens.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::size_t kFirstByte = 3;  // the id of byte 0; before it: unknown, begin, end
constexpr std::size_t kBytes = 256;
constexpr std::string_view kDefaultName = "tokenizer.bin";

struct Entry {
  float score;
  std::string_view text;
};

std::vector<Entry> read_entries(std::string_view text, const std::string& file) {
  const std::span bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  ByteReader reader(bytes, file);
  const auto longest = static_cast<std::int32_t>(reader.number<std::uint32_t>("longest token"));
  if (longest < 1) {
    throw Error("{}: longest token: expected a length of at least 1, found {}", file, longest);
  }
  std::vector<Entry> entries;
  while (reader.position() < bytes.size()) {
    const std::string what = fmt::format("token {}", entries.size());
    const auto score = std::bit_cast<float>(reader.number<std::uint32_t>(what));
    const auto length = static_cast<std::int32_t>(reader.number<std::uint32_t>(what));
    if (length < 0 || length > longest) {
      throw Error("{}: {}: expected a length from 0 to {} (the longest token), found {}", file,
                  what, longest, length);
    }
    const auto token = reader.take(static_cast<std::size_t>(length), what);
    entries.push_back({score, {reinterpret_cast<const char*>(token.data()), token.size()}});
  }
  return entries;
}

// Files spell a byte in one of three ways: "<0x8A>", the byte 8A, or the character U+008A.
bool spells_byte(std::string_view text, std::size_t byte) {
  if (text == byte_token_text(static_cast<unsigned char>(byte))) return true;
  if (text.size() == 1) return static_cast<unsigned char>(text[0]) == byte;
  if (byte < 0x80 || text.size() != 2) return false;
  return static_cast<unsigned char>(text[0]) == (0xc0 | byte >> 6) &&
         static_cast<unsigned char>(text[1]) == (0x80 | (byte & 0x3f));
}

bool has_bytes(const std::vector<Entry>& entries) {
  if (entries.size() < kFirstByte + kBytes) return false;
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    if (!spells_byte(entries[kFirstByte + byte].text, byte)) return false;
  }
  return true;
}

// For "\n<s>\n", which is how llama2.c prints it.
std::string_view without_newlines(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

Json describe_llama2c_tokenizer(const std::filesystem::path& path,
                                std::optional<std::size_t> vocab_size) {
  const std::string file = path.string();
  const std::string text = read_text_file(path, kMaxFileBytes);
  const std::vector<Entry> entries = read_entries(text, file);
  if (entries.size() < kFirstByte || entries.size() != vocab_size.value_or(entries.size())) {
    throw Error("{}: expected {} tokens, found {}", file,
                vocab_size ? fmt::format("{}", *vocab_size) : "at least 3", entries.size());
  }
  const bool bytes = has_bytes(entries);
  std::deque<std::string> spelt;  // texts that differ from those in the file
  SentencePieceVocabulary vocabulary;
  vocabulary.where = file + ": tokenizer";
  vocabulary.tokens_where = vocabulary.scores_where = file;
  for (std::size_t id = 0; id < entries.size(); ++id) {
    std::string_view token = entries[id].text;
    TokenKind kind = TokenKind::Normal;
    if (id < kFirstByte) {
      kind = id == 0 ? TokenKind::Unknown : TokenKind::Control;
      token = without_newlines(token);
    } else if (bytes && id < kFirstByte + kBytes) {
      kind = TokenKind::Byte;
      token = spelt.emplace_back(byte_token_text(static_cast<unsigned char>(id - kFirstByte)));
    } else {
      append_marked(spelt.emplace_back(), token);
      token = spelt.back();
    }
    if (utf8_error_offset(token) != std::string_view::npos) {
      throw Error("{}: token {}: expected UTF-8, found '{}'", file, id, printable(token, 40));
    }
    if (token.empty()) {
      if (id < kFirstByte) throw Error("{}: token {}: expected a text, found none", file, id);
      kind = TokenKind::Unused;
    }
    vocabulary.tokens.push_back({token, kind});
    vocabulary.scores.push_back(entries[id].score);
  }
  vocabulary.unknown = 0;
  vocabulary.begin = 1;
  return describe_sentencepiece_vocabulary(vocabulary);
}

std::optional<std::filesystem::path> find_llama2c_tokenizer(const std::filesystem::path& model,
                                                            std::size_t vocab_size) {
  for (const std::string& name :
       {fmt::format("tok{}.bin", vocab_size), std::string(kDefaultName)}) {
    std::filesystem::path path = model.parent_path() / name;
    if (is_there(path)) return path;
  }
  return std::nullopt;
}

Json describe_llama2c_tokenizer_beside(const std::filesystem::path& model, std::size_t vocab_size) {
  if (const auto file = find_llama2c_tokenizer(model, vocab_size)) {
    return describe_llama2c_tokenizer(*file, vocab_size);
  }
  throw Error(
      "{}: expected its vocabulary in the same folder, as {} or tok{}.bin, found neither (for a "
      "vocabulary in another folder: --tokenizer FILE)",
      model.string(), kDefaultName, vocab_size);
}

}  // namespace stagecraft
