#include "text/pipeline/decoder.h"

#include "text/pipeline/metaspace.h"
#include "text/pipeline/pattern.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

Decoder::Replace read_replace(const JsonNode& node) {
  const JsonNode pattern_node = node.at("pattern");
  const auto literal = pattern_node.find("String");
  if (!literal)
    pattern_node.refuse("a field 'String' (a decoder's Regex is not supported)", "none");
  if (literal->string().empty()) literal->refuse("a text to replace");
  const std::string content(node.at("content").string());
  return {std::string(literal->string()), content, content};
}

Decoder::Strip read_strip(const JsonNode& node) {
  const JsonNode content = node.at("content");
  const std::string_view character = content.string();
  if (!is_one_character(character)) content.refuse("one character");
  const auto count = [&](std::string_view name) {
    const JsonNode field = node.at(name);
    const std::int64_t n = field.integer();
    if (n < 0 || n > 1000) field.refuse("a count from 0 to 1000");
    return static_cast<std::size_t>(n);
  };
  return {std::string(character), count("start"), count("stop")};
}

Decoder::Replace read_metaspace(const JsonNode& node) {
  const MetaspaceOptions options = MetaspaceOptions::read(node);
  const bool keeps_first = options.prepend == MetaspaceOptions::Prepend::kNever;
  return {options.replacement, " ", keeps_first ? " " : ""};
}

}  // namespace

Decoder::Decoder() : steps_{Join{}} {}

Decoder::Decoder(const JsonNode& node) : where_(node.where()) { read(node); }

void Decoder::read(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string_view name = type.string();
  if (name == "Sequence") {
    for (const JsonNode part : node.at("decoders").elements()) read(part);
  } else if (name == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (name == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (name == "Fuse") {
    steps_.emplace_back(Fuse{});
  } else if (name == "Replace") {
    steps_.emplace_back(read_replace(node));
  } else if (name == "Strip") {
    steps_.emplace_back(read_strip(node));
  } else if (name == "Metaspace") {
    steps_.emplace_back(read_metaspace(node));
  } else {
    type.refuse(
        "a supported decoder (Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace)");
  }
}

}  // namespace stagecraft
