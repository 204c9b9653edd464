// The error message for a wrong GGUF file: its frame, its tensors, its config, its vocabulary.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>

#include "formats/gguf/config.h"
#include "tests/hostile/raw_gguf.h"
#include "tests/hostile/rows.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

using Break = std::function<void(RawGguf&)>;

// A row: how the file is broken, and the message after "FILE: ".
struct BadGguf {
  std::string name;
  Break how;
  std::string message;
  std::size_t cut = SIZE_MAX;  // keeps this many bytes of the file
  std::string file = "whole";
};

void PrintTo(const BadGguf& row, std::ostream* out) { *out << row.name; }

Break set(std::string key, std::string value) {
  return [=](RawGguf& file) { file.set(key, value); };
}
Break without(std::string key) {
  return [=](RawGguf& file) { file.erase(key); };
}
Break llama(std::string key, std::string value) { return set("llama." + key, value); }
Break vocabulary(std::string key, std::string value) { return set("tokenizer.ggml." + key, value); }
Break tensor(std::string name, std::function<void(RawGguf::Tensor&)> how) {
  return [=](RawGguf& file) { how(file.tensor(name)); };
}

constexpr const char* kDown = "blk.0.ffn_down.weight";
constexpr const char* kNorm = "output_norm.weight";
constexpr const char* kGemma4 = "gemma4-keys-as-values";
constexpr const char* kRopeFactors = "llama-rope-llama3";

void with_a_tiny_factor(RawGguf& file) {
  constexpr float kTiny = 0.9e-6f;
  std::memcpy(&file.data[file.tensor("rope_freqs.weight").offset], &kTiny, sizeof kTiny);
}
void with_a_tiny_factor_beside_yarn(RawGguf& file) {
  with_a_tiny_factor(file);
  file.set("llama.rope.scaling.type", text_value("yarn"));
  file.set("llama.rope.scaling.factor", f32(4.0f));
  file.set("llama.rope.scaling.original_context_length", u32(32));
}
// The last norm as one block of Q8_0, of 34 bytes, instead of 32 floats.
void norm_in_blocks(RawGguf& file) {
  RawGguf::Tensor& norm = file.tensor(kNorm);
  norm.type = 8;
  constexpr std::uint64_t kFreed = 32 * 4 - 64;  // tensors begin at multiples of 32
  file.data.erase(norm.offset, kFreed);
  for (RawGguf::Tensor& other : file.tensors) {
    if (other.offset > norm.offset) other.offset -= kFreed;
  }
}

const std::string kBeyond = u64_bytes(std::numeric_limits<std::uint64_t>::max());

const BadGguf kBadFrames[] = {
    {"is_empty", [](RawGguf&) {}, "expected a GGUF file, found one that begins with ''", 0},
    {"has_3_bytes", [](RawGguf&) {}, "expected a GGUF file, found one that begins with 'GGU'", 3},
    {"has_the_magic_only", [](RawGguf&) {},
     "version: expected 4 bytes, found 0: the file is cut short or damaged", 4},
    {"is_another_format", [](RawGguf& file) { file.magic = "ggjt"; },
     "expected a GGUF file, found one that begins with 'ggjt'"},
    {"is_a_git_lfs_pointer",
     [](RawGguf& file) { file.magic = "version https://git-lfs.github.com/spec/v1\noid"; },
     "is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'"},
    {"is_of_version_1", [](RawGguf& file) { file.version = 1; },
     "version: expected 2 or 3, found 1"},
    {"is_of_version_4", [](RawGguf& file) { file.version = 4; },
     "version: expected 2 or 3, found 4"},
    {"is_big_endian", [](RawGguf& file) { file.version = 3u << 24; },
     "version: expected 2 or 3, found 50331648: a big-endian file"},
    {"claims_more_pairs_than_bytes", [](RawGguf& file) { file.n_pairs = UINT64_MAX; },
     // The entries of tensors are read as key-value pairs, until one is not valid.
     "metadata key 23: expected 17451448556060672 bytes, found 9745: the file is cut short or "
     "damaged"},
    {"claims_fewer_pairs", [](RawGguf& file) { file.n_pairs = 1; },
     "tensor 'general.name': expected 1 to 4 dimensions, found 8"},
    {"claims_more_tensors_than_bytes", [](RawGguf& file) { file.n_tensors = UINT64_MAX; },
     "tensor 11: expected a name in UTF-8 of 1 to 1024 bytes, found 0 ('')"},
    {"has_an_empty_key", [](RawGguf& file) { file.pairs[0].key = ""; },
     "metadata key 0: expected UTF-8 of 1 to 65535 bytes, found 0 ('')"},
    {"has_a_key_twice",
     [](RawGguf& file) {
       file.pairs.push_back({"general.name", text_value("x")});
     },
     "'general.name' is given twice"},
    {"has_a_key_that_is_not_utf8", [](RawGguf& file) { file.pairs[1].key = "a\xff"; },
     "metadata key 1: expected UTF-8 of 1 to 65535 bytes, found 2 ('a\\xff')"},
    {"has_a_value_of_no_type", set("general.name", u32_bytes(13)),
     "'general.name': expected a type from 0 to 12, found 13"},
    {"has_a_text_beyond_the_end", set("general.name", u32_bytes(kText) + kBeyond),
     "'general.name': expected 18446744073709551615 bytes, found 11867: the file is cut short or "
     "damaged"},
    {"has_an_array_beyond_the_end",
     set("general.name", u32_bytes(kArray) + u32_bytes(kF32) + kBeyond),
     "'general.name': expected 18446744073709551615 bytes, found 11863: the file is cut short or "
     "damaged"},
    {"has_an_array_of_as_many_bytes_as_wrap_around",
     set("general.name", u32_bytes(kArray) + u32_bytes(kF32) + u64_bytes(std::uint64_t{1} << 62)),
     "'general.name': expected 18446744073709551615 bytes, found 11863: the file is cut short or "
     "damaged"},
    {"has_an_array_of_texts_beyond_the_end",
     set("general.name", u32_bytes(kArray) + u32_bytes(kText) + kBeyond),
     "'general.name': expected 549755813892 bytes, found 11827: the file is cut short or damaged"},
    {"has_an_array_of_arrays",
     set("general.name", u32_bytes(kArray) + u32_bytes(kArray) + u64_bytes(0)),
     "'general.name': an array of arrays is not supported"},
    {"has_a_flag_that_is_2", set("tokenizer.ggml.add_bos_token", boolean(2)),
     "'tokenizer.ggml.add_bos_token': expected true or false as 1 or 0, found 2"},
    {"has_an_alignment_of_0", set("general.alignment", u32(0)),
     "'general.alignment': expected a whole number from 1 to 1048576, found 0"},
    {"has_an_alignment_of_33", set("general.alignment", u32(33)),
     "'general.alignment': expected a power of two, found 33"},
    {"has_an_alignment_in_words", set("general.alignment", text_value("32")),
     "'general.alignment': expected a whole number from 1 to 1048576, found '32'"},
    {"is_one_part_of_several", set("split.count", u32(3)),
     "'split.count': expected a model in one file (merge the parts), found 3"},
};

const BadGguf kBadTensors[] = {
    {"has_a_tensor_without_a_name", tensor(kDown, [](auto& t) { t.name = ""; }),
     "tensor 9: expected a name in UTF-8 of 1 to 1024 bytes, found 0 ('')"},
    {"has_a_tensor_twice", tensor(kNorm, [](auto& t) { t.name = "blk.0.ffn_norm.weight"; }),
     "tensor 'blk.0.ffn_norm.weight' is given twice"},
    {"has_a_tensor_under_two_names",
     tensor("blk.0.ffn_norm.weight", [](auto& t) { t.name = "model.norm.weight"; }),
     "tensor 'output_norm.weight' is stored under two names"},
    {"has_a_tensor_of_no_dimensions", tensor(kDown, [](auto& t) { t.sizes.clear(); }),
     "tensor 'blk.0.ffn_down.weight': expected 1 to 4 dimensions, found 0"},
    {"has_a_tensor_of_5_dimensions",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {64, 32, 1, 1, 1};
            }),
     "tensor 'blk.0.ffn_down.weight': expected 1 to 4 dimensions, found 5"},
    {"has_a_size_of_0",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {64, 0};
            }),
     "tensor 'blk.0.ffn_down.weight': expected sizes of at least 1, found [0, 64]"},
    {"has_sizes_that_multiply_past_64_bits",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
            }),
     "tensor 'blk.0.ffn_down.weight': [1099511627776, 1099511627776] takes more bytes than 64 bits "
     "can count"},
    {"has_elements_that_multiply_past_64_bits",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {std::uint64_t{1} << 63, 2};
            }),
     "tensor 'blk.0.ffn_down.weight': [2, 9223372036854775808] takes more bytes than 64 bits can "
     "count"},
    {"has_rows_that_end_within_a_block",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {63, 32};
            }),
     "tensor 'blk.0.ffn_down.weight': Q4_0: expected rows of a multiple of 32 elements, found 63"},
    {"has_rows_that_are_no_super_block", tensor(kDown, [](auto& t) { t.type = 12; }),
     "tensor 'blk.0.ffn_down.weight': Q4_K: expected rows of a multiple of 256 elements, found 64"},
    {"has_a_type_that_is_gone", tensor(kDown, [](auto& t) { t.type = 4; }),
     "tensor 'blk.0.ffn_down.weight': type 4 is not supported"},
    {"has_a_type_that_others_read", tensor(kDown, [](auto& t) { t.type = 21; }),
     "tensor 'blk.0.ffn_down.weight': IQ3_S is not supported (only Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, "
     "Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, IQ4_NL, IQ4_XS, MXFP4)"},
    {"has_a_type_that_nobody_knows", tensor(kDown, [](auto& t) { t.type = 4000000000; }),
     "tensor 'blk.0.ffn_down.weight': type 4000000000 is not supported"},
    {"has_tensors_that_overlap", tensor(kDown, [](auto& t) { t.offset -= 32; }),
     "tensor 'blk.0.ffn_down.weight': expected to begin at byte 7840 of the data, found 7808"},
    {"has_a_hole", tensor(kDown, [](auto& t) { t.offset += 32; }),
     "tensor 'blk.0.ffn_down.weight': expected to begin at byte 7840 of the data, found 7872"},
    {"has_an_offset_of_2_to_the_64", tensor(kDown, [](auto& t) { t.offset = UINT64_MAX - 31; }),
     "tensor 'blk.0.ffn_down.weight': expected to begin at byte 7840 of the data, found "
     "18446744073709551584"},
    {"is_cut_in_the_data", [](RawGguf& file) { file.data.resize(5000); },
     "tensor 'blk.0.ffn_gate.weight': Q8_0 [64, 32] takes 2176 bytes, the file has 616: the file "
     "is cut short or damaged"},
    {"has_no_data", [](RawGguf& file) { file.data = ""; },
     "tensor 'token_embd.weight': Q8_0 [62, 32] takes 2108 bytes, the file has 0: the file is cut "
     "short or damaged"},
    {"has_data_that_belongs_to_nothing", [](RawGguf& file) { file.data += std::string(32, 'x'); },
     "expected 9120 bytes of data, as the tensors need, found 9152"},
    {"lacks_a_tensor", tensor(kNorm, [](auto& t) { t.name = "output_norms.weight"; }),
     "tensor 'output_norm.weight': expected [32], found none"},
    {"has_a_tensor_turned_round",
     tensor(kDown,
            [](auto& t) {
              t.sizes = {32, 64};
            }),
     "tensor 'blk.0.ffn_down.weight': expected [32, 64], found [64, 32]"},
    {"has_a_layer_more_than_it_says",
     tensor("blk.0.attn_norm.weight", [](auto& t) { t.name = "blk.1.attn_norm.weight"; }),
     "tensor 'blk.0.attn_norm.weight': expected [32], found none"},
    {"has_a_layer_that_it_does_not_say",
     [](RawGguf& file) { file.add("blk.1.attn_norm.weight", {32}, std::vector<float>(32)); },
     "tensor 'blk.1.attn_norm.weight' [32] is not part of the model that its metadata describes"},
    {"has_weights_of_integers", tensor("blk.0.attn_norm.weight", [](auto& t) { t.type = 26; }),
     "tensor 'blk.0.attn_norm.weight': expected F32, F16 or BF16, found I32"},
};

const BadGguf kBadConfigs[] = {
    {"has_no_architecture", without("general.architecture"), "'general.architecture' is missing"},
    {"has_another_architecture", set("general.architecture", text_value("mamba")),
     "'general.architecture': expected bloom, chatglm, cohere2, command-r, deepseek2, ernie4_5, "
     "falcon, gemma, gemma2, gemma3, gemma4, glm4, gpt-oss, gpt2, gptneox, granite, lfm2, llama, "
     "olmo, "
     "olmo2, olmoe, phi2, phi3, qwen2, qwen2moe, qwen3, qwen35, qwen3moe, smollm3, stablelm or "
     "starcoder2, found 'mamba'"},
    {"has_a_number_for_an_architecture", set("general.architecture", u32(1)),
     "'general.architecture': expected a text, found 1"},
    {"has_no_layers", llama("block_count", u32(0)),
     "'llama.block_count': expected a whole number from 1 to 4096, found 0"},
    {"has_4097_layers", llama("block_count", u32(4097)),
     "'llama.block_count': expected a whole number from 1 to 4096, found 4097"},
    {"has_a_negative_width", llama("embedding_length", i32(-32)),
     "'llama.embedding_length': expected a whole number from 1 to 16777216, found -32"},
    {"has_a_width_of_2_to_the_64", llama("embedding_length", u64(UINT64_MAX)),
     "'llama.embedding_length': expected a whole number from 1 to 16777216, found "
     "18446744073709551615"},
    {"has_a_fractional_width", llama("embedding_length", f32(32)),
     "'llama.embedding_length': expected a whole number from 1 to 16777216, found 32"},
    {"has_no_heads", without("llama.attention.head_count"),
     "'llama.attention.head_count' is missing"},
    {"has_heads_of_more_layers_than_it_has", llama("attention.head_count", i32_array({4, 4})),
     "'llama.attention.head_count': expected the same number for each layer, 1 in all, found an "
     "array of 2"},
    {"has_other_heads_in_each_layer",
     [](RawGguf& file) {
       file.set("llama.block_count", u32(2));
       file.set("llama.attention.head_count_kv", i32_array({2, 4}));
     },
     "'llama.attention.head_count_kv': expected the same number for each layer, 2 in all, found an "
     "array of 2"},
    {"has_no_heads_in_all_layers", llama("attention.head_count_kv", i32_array({0})),
     "'llama.attention.head_count_kv': expected the same number for each layer, 1 in all, found an "
     "array of 1"},
    {"has_heads_that_do_not_divide", llama("attention.head_count", u32(5)),
     "'llama.attention.head_count': expected a divisor of 32 (embedding_length), found 5"},
    {"sees_the_future", llama("attention.causal", boolean(0)),
     "'llama.attention.causal': expected true, found false"},
    {"has_a_window", llama("attention.sliding_window", u32(16)),
     "'llama.attention.sliding_window': expected no such key (it is not supported), found 16"},
    {"has_experts_of_which_none_is_used", llama("expert_count", u32(8)),
     "'llama.expert_used_count' is missing"},
    {"turns_half_of_a_head", llama("rope.dimension_count", u32(4)),
     "'llama.rope.dimension_count': expected 8, the size of a head, found 4"},
    {"has_values_of_another_width", llama("attention.value_length", u32(16)),
     "'llama.attention.value_length': expected 8, the size of a head, found 16"},
    {"stretches_its_context_otherwise", llama("rope.scaling.type", text_value("longrope")),
     "'llama.rope.scaling.type': expected 'none', 'linear' or 'yarn', found 'longrope'"},
    {"has_a_rope_base_that_is_no_number",
     llama("rope.freq_base", f32(std::numeric_limits<float>::quiet_NaN())),
     "'llama.rope.freq_base': expected a number, found nan"},
    {"has_a_rope_base_of_0", llama("rope.freq_base", f32(0)),
     "'llama.rope.freq_base': expected a number from 1 to 1000000000000, found 0.0"},
    {"has_heads_that_share_unevenly", llama("attention.head_count_kv", u32(3)),
     "'llama.attention.head_count': expected a multiple of 'llama.attention.head_count_kv' 3, "
     "found 4"},
    {"has_heads_of_an_odd_size",
     [](RawGguf& file) {
       for (const char* key :
            {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
         file.set(fmt::format("llama.{}", key), u32(7));
       }
     },
     "'llama.attention.key_length': expected an even number (RoPE rotates pairs), found 7"},
    {"has_an_eps_of_0", llama("attention.layer_norm_rms_epsilon", f32(0)),
     "'llama.attention.layer_norm_rms_epsilon': expected a number from 1e-30 to 1, found 0"},
    {"ends_with_a_token_that_is_not_there", vocabulary("eos_token_id", u32(62)),
     "'tokenizer.ggml.eos_token_id': expected a whole number from 0 to 61, found 62"},
    {"says_more_tokens_than_it_has", llama("vocab_size", u32(63)),
     "'llama.vocab_size': expected 62, the length of 'tokenizer.ggml.tokens', found 63"},
    {"has_more_tokens_than_rows",
     [](RawGguf& file) {
       file.erase("tokenizer.ggml.tokens");
       file.set("llama.vocab_size", u32(63));
     },
     "tensor 'token_embd.weight': expected [63, 32], found [62, 32]"},
    {"has_no_vocabulary_at_all",
     [](RawGguf& file) {
       file.erase("tokenizer.ggml.tokens");
       file.erase("llama.vocab_size");
     },
     "'tokenizer.ggml.tokens' is missing"},
};

// Checks of formats/gguf/architectures.cpp, for architectures other than Llama.
const BadGguf kBadFamilies[] = {
    {"has_no_soft_caps_of_a_size", set("gemma2.attn_logit_softcapping", text_value("50")),
     "'gemma2.attn_logit_softcapping': expected a number, found '50'", SIZE_MAX,
     "gemma2-head-scale"},
    {"has_a_window_of_a_text", set("gemma2.attention.sliding_window", text_value("none")),
     "'gemma2.attention.sliding_window': expected a whole number from 1 to 16777216, found 'none'",
     SIZE_MAX, "gemma2-head-scale"},
    {"has_a_soft_cap_without_elements", set("gemma2.attn_logit_softcapping", i32_array({})),
     "'gemma2.attn_logit_softcapping': expected a number, found an array of 0", SIZE_MAX,
     "gemma2-head-scale"},
    {"has_an_array_of_windows", set("gemma3.attention.sliding_window", i32_array({4, 4})),
     "'gemma3.attention.sliding_window': expected a whole number from 1 to 16777216, found an "
     "array of 2",
     SIZE_MAX, "gemma3-six-layers"},
    {"has_numbers_for_layers_that_slide",
     set("gemma3.attention.sliding_window_pattern", i32_array({1, 1, 1, 1, 1, 0})),
     "'gemma3.attention.sliding_window_pattern': expected an array of true and false, found an "
     "array of 6",
     SIZE_MAX, "gemma3-six-layers"},
    {"has_no_number_of_experts_per_row", without("qwen3moe.expert_used_count"),
     "'qwen3moe.expert_used_count' is missing", SIZE_MAX, "qwen3-moe-3-of-7"},
    {"has_an_expert_less_than_it_says", set("qwen3moe.expert_count", u32(8)),
     "tensor 'blk.0.ffn_down_exps.weight': expected a matrix for each of 8 experts "
     "('qwen3moe.expert_count'), found [7, 16, 11]",
     SIZE_MAX, "qwen3-moe-3-of-7"},
    {"has_an_expert_more_than_it_says", set("llama.expert_count", u32(4)),
     "tensor 'blk.0.ffn_gate_exps.weight': expected a matrix for each of 4 experts "
     "('llama.expert_count'), found [5, 19, 16]",
     SIZE_MAX, "mixtral-2-of-5"},
    {"has_no_scale_of_logits", without("granite.logit_scale"), "'granite.logit_scale' is missing",
     SIZE_MAX, "granite-multipliers"},
    {"has_no_rope", set("granite.rope.scaling.finetuned", boolean(0)),
     "'granite.rope.scaling.finetuned': expected true (a model without RoPE is not supported), "
     "found false",
     SIZE_MAX, "granite-multipliers"},
    {"stretches_its_context_by_lists", set("phi3.rope.scaling.attn_factor", f32(1.19f)),
     "'phi3.rope.scaling.attn_factor': expected no such key (it is not supported), found "
     "1.190000057220459",
     SIZE_MAX, "phi3-mha"},
    {"turns_more_than_a_head", set("stablelm.rope.dimension_count", u32(10)),
     "'stablelm.rope.dimension_count': expected at most 8, the size of a head, found 10", SIZE_MAX,
     "stablelm-biases"},
    {"has_heads_of_too_few_layers", set("lfm2.attention.head_count_kv", i32_array({2})),
     "'lfm2.attention.head_count_kv': expected a number for each of 3 layers, not all 0, found an "
     "array of 1",
     SIZE_MAX, "lfm2-conv-last"},
    {"has_no_heads_in_any_layer", set("lfm2.attention.head_count_kv", i32_array({0, 0, 0})),
     "'lfm2.attention.head_count_kv': expected a number for each of 3 layers, not all 0, found an "
     "array of 3",
     SIZE_MAX, "lfm2-conv-last"},
    {"has_layers_of_different_heads", set("lfm2.attention.head_count_kv", i32_array({1, 2, 0})),
     "'lfm2.attention.head_count_kv': expected the same number in all attention layers, found "
     "an array of 3",
     SIZE_MAX, "lfm2-conv-last"},
    {"predicts_with_all_its_layers", set("qwen35.nextn_predict_layers", u32(4)),
     "'qwen35.nextn_predict_layers': expected a whole number from 1 to 3, found 4", SIZE_MAX,
     "qwen3_5-long-keys"},
    {"has_no_size_of_a_state", without("qwen35.ssm.state_size"),
     "'qwen35.ssm.state_size' is missing", SIZE_MAX, "qwen3_5-long-keys"},
    {"has_a_list_of_recurrent_layers", set("qwen35.attention.recurrent_layers", i32_array({1})),
     "'qwen35.attention.recurrent_layers': expected no such key (it is not supported), found an "
     "array of 1",
     SIZE_MAX, "qwen3_5-long-keys"},
    {"has_rows_that_are_no_heads",
     tensor("blk.0.attn_qkv.weight",
            [](auto& t) {
              t.sizes = {48, 16};
            }),
     "tensor 'blk.0.attn_qkv.weight': expected rows for 12 heads of q, k and v, found [16, 48]",
     SIZE_MAX, "gpt2-tied"},
    {"has_a_decay_that_grows",
     [](RawGguf& file) {
       const float one = 1.0f;
       std::memcpy(&file.data[file.tensor("blk.0.ssm_a").offset], &one, sizeof one);
     },
     "tensor 'blk.0.ssm_a': expected numbers below 0, found 1", SIZE_MAX, "qwen3_5-long-keys"},
    {"has_heads_of_another_size", set("qwen35.ssm.inner_size", u32(31)),
     "'qwen35.ssm.inner_size': expected 4 (heads) * 8 (ssm.state_size), found 31", SIZE_MAX,
     "qwen3_5-long-keys"},
    {"predicts_where_no_model_does", set("gpt2.nextn_predict_layers", u32(1)),
     "'gpt2.nextn_predict_layers': expected no such key (it is not supported), found 1", SIZE_MAX,
     "gpt2-tied"},
    {"has_rows_for_more_heads_of_keys", set("phi2.attention.head_count", u32(8)),
     "tensor 'blk.0.attn_k.weight': expected [8, 32], found [16, 32]", SIZE_MAX, "phi-gqa2"},
    {"has_an_expert_of_another_size",
     tensor("blk.0.ffn_up_exps.weight", [](auto& t) { std::swap(t.sizes[0], t.sizes[1]); }),
     "tensor 'blk.0.ffn_up_exps.weight[0]': expected [11, 16], found [16, 11]", SIZE_MAX,
     "qwen3-moe-3-of-7"},
    {"has_q_k_and_v_of_another_width",
     tensor("blk.0.attn_qkv.weight",
            [](auto& t) {
              t.sizes = {8, 96};
            }),
     "tensor 'blk.0.attn_qkv.weight[q]': expected [16, 16], found [32, 8]", SIZE_MAX, "gpt2-tied"},
    {"has_yarn_without_a_factor", without("olmo2.rope.scaling.factor"),
     "'olmo2.rope.scaling.factor' is missing", SIZE_MAX, "olmo3-yarn"},
    {"has_yarn_that_is_mixed_otherwise", set("olmo2.rope.scaling.yarn_ext_factor", f32(0)),
     "'olmo2.rope.scaling.yarn_ext_factor': expected 1, found 0", SIZE_MAX, "olmo3-yarn"},
    {"has_one_expert_more_with_biases", set("gpt-oss.expert_count", u32(4)),
     "tensor 'blk.0.ffn_down_exps.weight': expected a matrix for each of 4 experts "
     "('gpt-oss.expert_count'), found [5, 16, 19]",
     SIZE_MAX, "gpt-oss-usual-limit"},
    {"scores_experts_otherwise", set("deepseek2.expert_gating_func", u32(2)),
     "'deepseek2.expert_gating_func': expected 1 (softmax), found 2", SIZE_MAX,
     "deepseek-v2-greedy"},
    {"scores_experts_by_softmax", set("deepseek2.expert_gating_func", u32(1)),
     "'deepseek2.expert_gating_func': expected 2 (sigmoid), found 1", SIZE_MAX,
     "deepseek-v3-groups"},
    {"has_keys_that_rope_rotates_whole", set("deepseek2.attention.key_length_mla", u32(4)),
     "'deepseek2.attention.key_length_mla': expected more than 4 (rope.dimension_count), found 4",
     SIZE_MAX, "deepseek-v2-greedy"},
    {"has_keys_beside_the_latent", set("deepseek2.attention.key_length", u32(15)),
     "'deepseek2.attention.key_length': expected 14, found 15", SIZE_MAX, "deepseek-v2-greedy"},
    {"has_two_latents", set("deepseek2.attention.head_count_kv", u32(2)),
     "'deepseek2.attention.head_count_kv': expected 1, found 2", SIZE_MAX, "deepseek-v2-greedy"},
    {"has_no_size_of_the_latent", without("deepseek2.attention.kv_lora_rank"),
     "'deepseek2.attention.kv_lora_rank' is missing", SIZE_MAX, "deepseek-v2-greedy"},
    {"has_matrices_for_fewer_heads",
     tensor("blk.0.attn_k_b.weight",
            [](auto& t) {
              t.sizes = {12, 10, 2};
            }),
     "tensor 'blk.0.attn_k_b.weight': expected a matrix for each of 4 heads "
     "('deepseek2.attention.head_count'), found [2, 10, 12]",
     SIZE_MAX, "deepseek-v2-greedy"},
    {"has_the_eps_of_another_norm", without("starcoder2.attention.layer_norm_epsilon"),
     "'starcoder2.attention.layer_norm_epsilon' is missing", SIZE_MAX, "starcoder2-no-window"},
    {"has_no_head_size_of_global_layers", without("gemma4.attention.key_length"),
     "'gemma4.attention.key_length' is missing", SIZE_MAX, kGemma4},
    {"has_values_of_another_size_in_local_layers", set("gemma4.attention.value_length_swa", u32(8)),
     "'gemma4.attention.value_length_swa': expected 6, found 8", SIZE_MAX, kGemma4},
    {"turns_a_part_of_local_heads", set("gemma4.rope.dimension_count_swa", u32(4)),
     "'gemma4.rope.dimension_count_swa': expected 6, found 4", SIZE_MAX, kGemma4},
    {"has_heads_for_fewer_layers", set("gemma4.attention.head_count_kv", i32_array({2, 1, 2})),
     "'gemma4.attention.head_count_kv': expected a number for each of 4 layers, found an array of "
     "3",
     SIZE_MAX, kGemma4},
    {"has_a_layer_of_no_heads", set("gemma4.attention.head_count_kv", i32_array({2, 1, 0, 1})),
     "'gemma4.attention.head_count_kv': expected numbers from 1 to 16777216, found an array of 4",
     SIZE_MAX, kGemma4},
    {"has_local_layers_that_differ", set("gemma4.attention.head_count_kv", i32_array({2, 1, 4, 1})),
     "'gemma4.attention.head_count_kv': expected one number for all layers with a window, and one "
     "for all global layers, found an array of 4",
     SIZE_MAX, kGemma4},
    {"has_global_layers_that_differ",
     set("gemma4.attention.head_count_kv", i32_array({2, 1, 2, 2})),
     "'gemma4.attention.head_count_kv': expected one number for all layers with a window, and one "
     "for all global layers, found an array of 4",
     SIZE_MAX, kGemma4},
    {"has_a_wide_block_before_others",
     set("gemma4.feed_forward_length", i32_array({19, 38, 19, 38, 38})),
     "'gemma4.feed_forward_length': expected 19 in the first 2 layers, and the same or twice as "
     "many in the others, found an array of 5",
     SIZE_MAX, "gemma4-shared-caches"},
    {"shares_all_caches", set("gemma4.attention.shared_kv_layers", u32(5)),
     "'gemma4.attention.shared_kv_layers': expected a whole number from 0 to 2, found 5", SIZE_MAX,
     "gemma4-2-of-5-experts"},
    {"has_a_factor_that_is_too_small", with_a_tiny_factor,
     "tensor 'rope_freqs.weight': expected positive numbers, found 9e-07", SIZE_MAX, kRopeFactors},
    {"has_such_a_factor_beside_yarn", with_a_tiny_factor_beside_yarn,
     "tensor 'rope_freqs.weight': expected positive numbers, found 9e-07", SIZE_MAX, kRopeFactors},
    {"does_not_say_which_pairs_turn",
     tensor("rope_freqs.weight", [](auto& t) { t.name = "rope_freqs.bias"; }),
     "tensor 'rope_freqs.weight' is missing", SIZE_MAX, kGemma4},
    {"says_it_of_pairs_of_local_heads", tensor("rope_freqs.weight", [](auto& t) { t.sizes = {3}; }),
     "tensor 'rope_freqs.weight': expected F32 [4], found F32 [3]", SIZE_MAX, kGemma4},
    {"slows_down_a_pair",
     [](RawGguf& file) {
       file.tensor("rope_freqs.weight").name = "rope_freqs.old";
       file.add("rope_freqs.weight", {4}, {1.0f, 8.0f, 1e30f, 1e30f});
     },
     "tensor 'rope_freqs.weight': expected 1 for the first pairs and 1e30 for the others, found 8",
     SIZE_MAX, kGemma4},
    {"scales_rope_of_gemma4", set("gemma4.rope.scaling.factor", f32(2.0f)),
     "'gemma4.rope.scaling.factor': expected no such key (it is not supported), found 2", SIZE_MAX,
     kGemma4},
};

// The vocabulary becomes the substrings of a text: a token can be made of two others in as many
// ways as it has places to cut.
void use_every_substring(RawGguf& file) {
  std::mt19937 random(1);
  std::string text(400, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < 150; ++begin) {
    for (std::size_t length = begin == 0 ? 1 : 6; length < 250; ++length) {
      tokens.push_back(text.substr(begin, length));
    }
  }
  file.set("tokenizer.ggml.model", text_value("llama"));
  file.set("tokenizer.ggml.tokens", texts(tokens));
  file.set("tokenizer.ggml.token_type", i32_array(std::vector<std::int32_t>(tokens.size(), 1)));
  file.set("tokenizer.ggml.scores", i32_array(std::vector<std::int32_t>(tokens.size(), 0)));
}

const BadGguf kBadVocabularies[] = {
    {"has_no_tokenizer", without("tokenizer.ggml.model"), "'tokenizer.ggml.model' is missing"},
    {"was_written_without_a_tokenizer",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.model", text_value("none"));
       file.erase("tokenizer.ggml.tokens");
       file.set("llama.vocab_size", u32(62));
     },
     "expected a tokenizer in the file, found none; give the model's tokenizer: --tokenizer PATH"},
    {"has_another_tokenizer", vocabulary("model", text_value("t5")),
     "'tokenizer.ggml.model': expected 'gpt2', 'llama' or 'gemma4', found 't5'"},
    {"has_a_merge_of_one_token_in_gemmas_way",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.model", text_value("gemma4"));
       file.set("tokenizer.ggml.merges", texts({"t h", "the"}));
     },
     "'tokenizer.ggml.merges': merge 1: expected two tokens separated by a space, found 'the'"},
    {"merges_a_token_that_is_not_there",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.model", text_value("gemma4"));
       file.set("tokenizer.ggml.merges", texts({"t \xe2\x96\x81zebra"}));
     },
     "tokenizer: tokenizer.ggml.merges[0]: expected two tokens of tokenizer.ggml.tokens whose "
     "concatenation is also in tokenizer.ggml.tokens, found "
     "'\xe2\x96\x81zebra', which is not in it"},
    {"cuts_text_in_a_way_nobody_knows", vocabulary("pre", text_value("klingon")),
     "'tokenizer.ggml.pre': expected the name of a pre-tokenizer that this engine knows, found "
     "'klingon'"},
    {"has_no_types", without("tokenizer.ggml.token_type"),
     "'tokenizer.ggml.token_type' is missing"},
    {"has_too_few_types", vocabulary("token_type", i32_array({1, 1, 1})),
     "'tokenizer.ggml.token_type': expected one type for each of 62 tokens, found an array of 3"},
    {"has_a_type_of_token_that_nobody_knows",
     vocabulary("token_type", i32_array(std::vector<std::int32_t>(62, 7))),
     "'tokenizer.ggml.token_type': token 0: expected a type from 1 to 6, found 7"},
    {"has_types_in_words", vocabulary("token_type", texts({"control"})),
     "'tokenizer.ggml.token_type': expected an array of whole numbers, found an array of 1"},
    {"has_a_token_that_is_not_utf8",
     [](RawGguf& file) {
       std::vector<std::string> tokens(62, "x");
       tokens[9] = "\xf0\x9f";
       file.set("tokenizer.ggml.tokens", texts(tokens));
     },
     "'tokenizer.ggml.tokens': token 9: expected UTF-8, found '\\xf0\\x9f'"},
    {"has_a_token_twice",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.tokens", texts(std::vector<std::string>(62, "x")));
       file.set("tokenizer.ggml.merges", texts({}));
     },
     "tokenizer: 'tokenizer.ggml.tokens.x' is given twice"},
    {"has_no_merges", without("tokenizer.ggml.merges"), "'tokenizer.ggml.merges' is missing"},
    {"has_a_merge_of_one_token", vocabulary("merges", texts({"t h", "the"})),
     "'tokenizer.ggml.merges': merge 1: expected two tokens separated by a space, found 'the'"},
    {"merges_tokens_that_are_not_there", vocabulary("merges", texts({"t h", "t Q"})),
     "tokenizer: tokenizer.ggml.merges[1]: expected two tokens of tokenizer.ggml.tokens whose "
     "concatenation is also in tokenizer.ggml.tokens, found "
     "'Q', which is not in it"},
    {"begins_with_a_token_that_is_not_there",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.add_bos_token", boolean(1));
       file.set("tokenizer.ggml.bos_token_id", u32(62));
     },
     "'tokenizer.ggml.bos_token_id': expected a whole number from 0 to 61, found 62"},
    {"begins_with_a_token_that_it_does_not_name",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.add_bos_token", boolean(1));
       file.erase("tokenizer.ggml.bos_token_id");
     },
     "'tokenizer.ggml.bos_token_id' is missing, but 'tokenizer.ggml.add_bos_token' needs it"},
    {"has_no_scores", vocabulary("model", text_value("llama")),
     "'tokenizer.ggml.scores' is missing"},
    {"has_a_score_too_few",
     [](RawGguf& file) {
       file.set("tokenizer.ggml.model", text_value("llama"));
       file.set("tokenizer.ggml.scores", u32_bytes(kArray) + u32_bytes(kU8) + u64_bytes(1) + "x");
     },
     "'tokenizer.ggml.scores': expected one score for each of 62 tokens, found an array of 1"},
    {"has_a_scored_token_without_end",
     [](RawGguf& file) {
       std::vector<std::string> tokens;
       for (int i = 0; i < 62; ++i) tokens.push_back(std::string(300, static_cast<char>('A' + i)));
       file.set("tokenizer.ggml.model", text_value("llama"));
       file.set("tokenizer.ggml.tokens", texts(tokens));
       file.set("tokenizer.ggml.token_type", i32_array(std::vector<std::int32_t>(62, 1)));
       file.set("tokenizer.ggml.scores", i32_array(std::vector<std::int32_t>(62, 0)));
     },
     "'tokenizer.ggml.tokens': token 0: expected at most 256 bytes, found 300"},
    {"merges_in_millions_of_ways", use_every_substring,
     "'tokenizer.ggml.tokens': expected tokens with fewer possible merges, found an array of "
     "36605"},
};

class RefusedGguf : public testing::TestWithParam<BadGguf> {
 protected:
  RefusedGguf() {
    RawGguf raw = RawGguf::read(TEST_DATA "/gguf/" + GetParam().file + ".gguf");
    GetParam().how(raw);
    write_file(path_, raw.bytes().substr(0, GetParam().cut));
  }
  std::string message() const { return path_ + ": " + GetParam().message; }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("model.gguf");
};

class RefusedGgufModel : public RefusedGguf {};
class RefusedGgufVocabulary : public RefusedGguf {};

TEST_P(RefusedGgufModel, InOneLineThatSaysWhatIsWrong) {
  EXPECT_EQ(error_of([&] { textbook_engine(path_); }), message());
  const LimitedRun run = run_limited({"story", "--model", path_, "--ids", "1,2,3", "--print-ids",
                                      "--max-tokens", "2", "--threads", "1"});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(run.err, "stagecraft: " + message() + "\n");
  EXPECT_EQ(run.out, "");
}

// llama.cpp's script writes two fields of config.json with one key.
TEST(GgufModel, TakesTheFactorOfAttentionThatTransformersTakes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.gguf");
  const auto factor_with = [&](const std::string& key, float value) {
    RawGguf raw = RawGguf::read(TEST_DATA "/gguf/qwen2-rope-yarn.gguf");
    raw.set("qwen2.rope.scaling.factor", f32(4.0f));
    raw.set("qwen2.rope.scaling." + key, f32(value));
    write_file(path, raw.bytes());
    const auto rope = nlohmann::json::parse(gguf_config_json(GgufFile(path)))["rope_scaling"];
    return rope.value("attention_factor", 0.0);  // 0: the usual one, 0.1 * ln(4) + 1
  };
  EXPECT_EQ(factor_with("yarn_attn_factor", 1.25f), 1.25);
  EXPECT_EQ(factor_with("yarn_attn_factor", 0.878f), 0.0);
  EXPECT_NEAR(factor_with("attn_factor", 0.5f), 0.5 * (0.1 * std::log(4.0) + 1.0), 1e-12);
}

// The layers of the course can read it; no other backend can.
TEST(GgufModel, IsRefusedIfANormIsStoredInBlocks) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.gguf");
  RawGguf raw = RawGguf::read(TEST_DATA "/gguf/whole.gguf");
  norm_in_blocks(raw);
  write_file(path, raw.bytes());
  const LimitedRun run =
      run_limited({"story", "--model", path, "--ids", "1,2,3", "--max-tokens", "2"});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(run.err, "stagecraft: " + path +
                         ": tensor 'output_norm.weight': expected F32, F16 or BF16, found Q8_0\n");
}

TEST_P(RefusedGgufVocabulary, InOneLineThatSaysWhatIsWrong) {
  EXPECT_EQ(error_of([&] { Tokenizer::open(path_); }), message());
  const LimitedRun run = run_limited({"tokenize", "--model", path_});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(run.err, "stagecraft: " + message() + "\n");
  EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(Frames, RefusedGgufModel, testing::ValuesIn(kBadFrames), row_name);
INSTANTIATE_TEST_SUITE_P(Tensors, RefusedGgufModel, testing::ValuesIn(kBadTensors), row_name);
INSTANTIATE_TEST_SUITE_P(Configs, RefusedGgufModel, testing::ValuesIn(kBadConfigs), row_name);
INSTANTIATE_TEST_SUITE_P(Families, RefusedGgufModel, testing::ValuesIn(kBadFamilies), row_name);
INSTANTIATE_TEST_SUITE_P(All, RefusedGgufVocabulary, testing::ValuesIn(kBadVocabularies), row_name);

TEST(RefusedGguf, RunsBeforeItIsBroken) {
  const TemporaryFolder folder;
  const RawGguf raw = RawGguf::read(TEST_DATA "/gguf/whole.gguf");
  EXPECT_EQ(raw.bytes(), read_file(TEST_DATA "/gguf/whole.gguf"));
}

}  // namespace
}  // namespace stagecraft
