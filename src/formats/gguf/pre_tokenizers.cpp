#include "formats/gguf/pre_tokenizers.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_text.h"

namespace stagecraft {
namespace {

constexpr std::string_view kNone = "null";

// Each is the "pre_tokenizer" of the model after which it is named (Hugging Face).
constexpr const char* kGpt2 =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";

constexpr const char* kDigitsThenGpt2 = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})";

// Cuts a text by a pattern: each match is a piece.
std::string cut_by(std::string_view pattern) {
  return R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": )" +
         json_quoted(pattern) + R"(}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";
}

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                                    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Marks, such as accents, belong to the letters before them.
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

// Also cuts words before a capital letter. ending: a pattern that belongs to the word before it,
// like "'s".
std::string words_by_case(std::string_view ending, std::string_view digits) {
  const std::string start = R"([^\r\n\p{L}\p{N}]?)";
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  return fmt::format("{}{}*{}+{}|{}{}+{}*{}|{}{}", start, upper, lower, ending, start, upper, lower,
                     ending, digits, R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

constexpr const char* kDeepseekCoder = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[\\r\\n]"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s?\\p{L}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s?\\p{P}+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}},
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

// DeepSeek LLM, V2 and Coder V2: the letters are those of scripts with capitals, listed one by one.
constexpr const char* kDeepseekLlm =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[\\r\\n]"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s?[)"
    R"(A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-Ჺ)"
    R"(Ჽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3)"
    R"(ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳ)"
    R"(Ꙁ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃)"
    R"(]+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\s+$"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"}},
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

// DeepSeek-V3 and R1.
constexpr const char* kDeepseekV3 =
    R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "\\p{N}{1,3}"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+)"
    R"(| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";

constexpr const char* kFalcon = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Punctuation", "behavior": "Contiguous"},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  {"type": "Digits", "individual_digits": false},
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": "[0-9][0-9][0-9]"}}]})";

// Of no model: llama.cpp uses it if a file does not name one.
constexpr const char* kDefaultPreTokenizer = R"({"type": "Sequence", "pretokenizers": [
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

const std::vector<Named>& pre_tokenizers() {
  static const std::vector<Named> all = [] {
    const std::string llama3 = cut_by(kLlama3), qwen2 = cut_by(kQwen2);
    const std::string gpt4o =
        cut_by(words_by_case(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)", R"(\p{N}{1,3})"));
    const std::string tekken = cut_by(words_by_case("", R"(\p{N})"));
    return std::vector<Named>{
        Named{"default", {kNone, kDefaultPreTokenizer}},
        Named{"gpt-2", {kNone, kGpt2}},
        Named{"phi-2", {kNone, kGpt2}},
        Named{"olmo", {kNfc, kGpt2}},
        Named{"mpt", {kNfc, kGpt2}},  // GPT-NeoX, Pythia
        Named{"smollm", {kNone, kDigitsThenGpt2}},
        Named{"command-r", {kNfc, kDigitsThenGpt2}},
        Named{"starcoder", {kNone, kDigitsThenGpt2}},
        Named{"refact", {kNone, kDigitsThenGpt2}},
        Named{"llama-bpe", {kNone, llama3, true, true}},
        Named{"llama3", {kNone, llama3, true, true}},
        Named{"llama-v3", {kNone, llama3, true, true}},
        Named{"falcon3", {kNone, llama3, true, true}},
        Named{"lfm2", {kNone, llama3, true, true}},
        Named{"dbrx", {kNone, llama3}},       // Phi-4, OLMo 2, Granite 4
        Named{"smaug-bpe", {kNone, llama3}},  // SmolLM3
        Named{"glm4", {kNone, llama3}},
        Named{"chatglm-bpe", {kNone, llama3}},
        Named{"qwen2", {kNfc, qwen2}},
        Named{"deepseek-r1-qwen", {kNfc, qwen2}},
        Named{"stablelm2", {kNone, qwen2}},
        Named{"qwen35", {kNfc, cut_by(kQwen35)}},
        Named{"gpt-4o", {kNone, gpt4o}},               // gpt-oss, Phi-4-mini
        Named{"tekken", {kNone, tekken, true, true}},  // Mistral Nemo and later
        Named{"deepseek-coder", {kNone, kDeepseekCoder}},
        Named{"deepseek-llm", {kNone, kDeepseekLlm}},
        Named{"deepseek-v3", {kNone, kDeepseekV3}},
        Named{"falcon", {kNone, kFalcon}},
        Named{"bloom", {kNone, cut_by(kBloom)}},
    };
  }();
  return all;
}

}  // namespace

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  names.reserve(pre_tokenizers().size());
  for (const Named& named : pre_tokenizers()) names.push_back(named.name);
  return names;
}

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto found = std::ranges::find(pre_tokenizers(), name, &Named::name);
  return found == pre_tokenizers().end() ? nullptr : &found->what;
}

}  // namespace stagecraft
