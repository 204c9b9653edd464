#include "text/formats/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

constexpr std::string_view kNone = "null";

// Each is the "pre_tokenizer" of the model that gave it its name (Hugging Face).
constexpr std::string_view kGpt2 =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";

constexpr std::string_view kDigitsThenGpt2 = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})";

constexpr std::string_view kLlama3 =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3})"
    R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr std::string_view kQwen2 =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N})"
    R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

// Marks, such as accents, belong to the letters before them.
constexpr std::string_view kQwen35 =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N})"
    R"(| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

// Words are also cut before a capital letter.
constexpr std::string_view kGpt4o =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": ")"
    R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*)"
    R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+)"
    R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3})"
    R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

// The same without "'s" and the like, and each digit by itself.
constexpr std::string_view kTekken =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": ")"
    R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*)"
    R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|)"
    R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+)"
    R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N})"
    R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr std::string_view kDeepseekCoder = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[\\r\\n]"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s?\\p{L}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s?\\p{P}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}},
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr std::string_view kBloom = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    " ?[^(\\s|.,!?…。，、।۔،)]+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr std::string_view kFalcon = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Punctuation", "behavior": "Contiguous"},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  {"type": "Digits", "individual_digits": false},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[0-9][0-9][0-9]"}}]})";

// No model's, but what llama.cpp does where a file does not say.
constexpr std::string_view kDefault = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[\\p{P}$+<=>^~|]+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\p{N}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[0-9][0-9][0-9]"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr std::string_view kNfc = R"({"type": "NFC"})";

struct Named {
  std::string_view name;
  GgufPreTokenizer what;
};

constexpr std::array kPreTokenizers = {
    Named{"default", {kNone, kDefault}},
    Named{"gpt-2", {kNone, kGpt2}},
    Named{"phi-2", {kNone, kGpt2}},
    Named{"olmo", {kNfc, kGpt2}},
    Named{"mpt", {kNfc, kGpt2}},  // GPT-NeoX, Pythia
    Named{"smollm", {kNone, kDigitsThenGpt2}},
    Named{"command-r", {kNfc, kDigitsThenGpt2}},
    Named{"starcoder", {kNone, kDigitsThenGpt2}},
    Named{"refact", {kNone, kDigitsThenGpt2}},
    Named{"llama-bpe", {kNone, kLlama3, true, true}},
    Named{"llama3", {kNone, kLlama3, true, true}},
    Named{"llama-v3", {kNone, kLlama3, true, true}},
    Named{"falcon3", {kNone, kLlama3, true, true}},
    Named{"lfm2", {kNone, kLlama3, true, true}},
    Named{"dbrx", {kNone, kLlama3}},       // Phi-4, OLMo 2, Granite 4
    Named{"smaug-bpe", {kNone, kLlama3}},  // SmolLM3
    Named{"glm4", {kNone, kLlama3}},
    Named{"chatglm-bpe", {kNone, kLlama3}},
    Named{"qwen2", {kNfc, kQwen2}},
    Named{"deepseek-r1-qwen", {kNfc, kQwen2}},
    Named{"stablelm2", {kNone, kQwen2}},
    Named{"qwen35", {kNfc, kQwen35}},
    Named{"gpt-4o", {kNone, kGpt4o}},               // gpt-oss, Phi-4-mini
    Named{"tekken", {kNone, kTekken, true, true}},  // Mistral Nemo and later
    Named{"deepseek-coder", {kNone, kDeepseekCoder}},
    Named{"falcon", {kNone, kFalcon}},
    Named{"bloom", {kNone, kBloom}},
};

}  // namespace

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kPreTokenizers));
  for (const Named& named : kPreTokenizers) names.push_back(named.name);
  return names;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto* found = std::ranges::find(kPreTokenizers, name, &Named::name);
  return found == kPreTokenizers.end() ? nullptr : &found->what;
}

}  // namespace stagecraft
