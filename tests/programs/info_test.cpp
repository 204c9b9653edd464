#include <gtest/gtest.h>

#include "tests/support/random_model.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_chat_model.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(InfoProgram, DescribesAFolderWithoutATokenizer) {
  const ProgramResult result = run_program({"info", kModels + "qwen3-qk-norm", "--context", "100"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string first = kModels + "qwen3-qk-norm\n";
  ASSERT_TRUE(result.out.starts_with(first)) << result.out;
  EXPECT_EQ(result.out.substr(first.size()), R"(  architecture    qwen3, 2 layers
  parameters      13,208
  width           24, feed-forward 37
  attention       4 heads of 8, 2 for keys and values, norm on q and k
  window          none
  positions       RoPE, theta 10000
  context         64 tokens
  vocabulary      65 rows, with an output head
  end tokens      2

tokenizer
  kind            none

25 tensors, 52.83 KB
  lm_head.weight                                  [65, 24]  F32
  model.embed_tokens.weight                       [65, 24]  F32
  model.layers.*.input_layernorm.weight           [24]      F32  x 2
  model.layers.*.mlp.down_proj.weight             [24, 37]  F32  x 2
  model.layers.*.mlp.gate_proj.weight             [37, 24]  F32  x 2
  model.layers.*.mlp.up_proj.weight               [37, 24]  F32  x 2
  model.layers.*.post_attention_layernorm.weight  [24]      F32  x 2
  model.layers.*.self_attn.k_norm.weight          [8]       F32  x 2
  model.layers.*.self_attn.k_proj.weight          [16, 24]  F32  x 2
  model.layers.*.self_attn.o_proj.weight          [24, 32]  F32  x 2
  model.layers.*.self_attn.q_norm.weight          [8]       F32  x 2
  model.layers.*.self_attn.q_proj.weight          [32, 24]  F32  x 2
  model.layers.*.self_attn.v_proj.weight          [16, 24]  F32  x 2
  model.norm.weight                               [24]      F32

memory at a context of 100 tokens
  weights           69.89 KB  packed in panels; the pages of the file are released
  KV cache          40.96 KB  0.41 KB per token
    as f32          81.92 KB  with --kv-type f32
    as q8_0         35.84 KB  with --kv-type q8_0
  workspace        166.26 KB
  total            277.11 KB

work for token 100 of a text
  linear layers    22.99 KFLOP  a product and a sum per weight
  attention        25.60 KFLOP  grows with the text
  total            48.59 KFLOP
)");
}

// Width 24, feed-forward 37, 4 query heads of 6, 2 key heads, 65 tokens, 2 layers, tied embeddings.
TEST(InfoProgram, CountsATiedTableOnce) {
  const std::size_t layer = 2 * 24 + 2 * 24 * 24 + 2 * 12 * 24 + 3 * 24 * 37;
  const std::string tied =
      fmt::format("parameters      {},{:03}\n", (2 * layer + 24 + 65 * 24) / 1000,
                  (2 * layer + 24 + 65 * 24) % 1000);
  EXPECT_TRUE(says(run_program({"info", kModels + "llama-tied-embed-only"}), tied));
  EXPECT_TRUE(says(run_program({"info", kModels + "llama-tied-lm-head-only"}), tied));
  // Two different tables are counted twice.
  EXPECT_FALSE(says(run_program({"info", kModels + "llama-tied-both-differ"}), tied));
}

// 4 layers, one with experts: each token uses 2 of 5 (16 -> 11 -> 16), and a shared one (16 -> 13
// -> 16).
TEST(InfoProgram, CountsTheExpertsThatATokenGoesTo) {
  const ProgramResult result = run_program({"info", kModels + "qwen2-moe-layers"});
  const std::size_t unused = 3 * 3 * 11 * 16;
  EXPECT_TRUE(says(result, fmt::format("parameters      9,904, {},{:03} for each token\n",
                                       (9904 - unused) / 1000, (9904 - unused) % 1000)))
      << result.out;
  EXPECT_TRUE(
      says(result, "experts         5, 2 per token, feed-forward 11; 1, feed-forward 13\n"));
  // The 3 experts that a token does not use, in f32 panels of 32 outputs: gate and up have one
  // panel of 16 inputs each, down one of 11.
  const double panels = 3 * (2 * 16 + 11) * 32 * 4;
  EXPECT_TRUE(says(result, fmt::format("weights           {:.2f} KB", (77312 + panels) / 1000)));
  EXPECT_TRUE(says(result, fmt::format("read per token    {:.2f} KB", 77312 / 1000.0)));
  const ProgramResult all = run_program({"info", kModels + "mixtral-2-of-5"});
  EXPECT_TRUE(says(all, "width           16\n")) << all.out;
}

TEST(InfoProgram, CountsThePanelsThatTheWeightsAreKeptIn) {
  const ProgramResult bf16 = run_program({"info", kModels + "llama-bf16"});
  // 2 layers, in bf16 panels of 32 outputs and 24 inputs: one each for q, k, v and o, two each for
  // gate and up. One f32 panel for down, because 37 inputs are odd. Three panels for the head.
  const double layer = (4 + 4) * 24 * 32 * 2 + 37 * 32 * 4;
  const std::string bytes = fmt::format("{:.2f} KB", (2 * layer + 3 * 24 * 32 * 2) / 1000);
  EXPECT_TRUE(says(bf16, bytes + "  packed in panels")) << bytes << "\n" << bf16.out;
  EXPECT_TRUE(says(run_program({"info", kModels + "llama-mixed-dtypes"}), "F16"));
}

TEST(InfoProgram, ReadsShardsAsOne) {
  const ProgramResult whole = run_program({"info", kModels + "llama-gqa2"});
  const ProgramResult sharded = run_program({"info", kModels + "llama-sharded"});
  EXPECT_EQ(whole.out.substr(whole.out.find('\n')), sharded.out.substr(sharded.out.find('\n')));
}

TEST(InfoProgram, SaysWhatWeightsOfOtherFormatsBecome) {
  const ProgramResult gptq = run_program({"info", TEST_DATA "/formats/quantized/gptq"});
  EXPECT_EQ(gptq.code, 0) << gptq.err;
  EXPECT_TRUE(says(gptq, "stored as       GPTQ int4, one scale per 32 inputs; read as Q4_0\n"));
  EXPECT_TRUE(says(gptq, "model.layers.*.mlp.down_proj.weight             [32, 64]  Q4_0\n"));
  EXPECT_TRUE(says(
      gptq, "while opening      1.73 KB  copies of tensors stored in another order or in parts"));
  EXPECT_FALSE(says(gptq, "of them"));
  const ProgramResult gguf = run_program({"info", TEST_DATA "/gguf/four-bits.gguf"});
  EXPECT_EQ(gguf.code, 0) << gguf.err;
  EXPECT_FALSE(says(gguf, "of them"));
  EXPECT_FALSE(says(gguf, "stored as"));
  const ProgramResult odd = run_program({"info", TEST_DATA "/models/llama-bf16"});
  EXPECT_TRUE(says(odd, "of them       BF16 as F32\n")) << odd.out;
}

TEST(InfoProgram, ListsEachTensorWhenAsked) {
  const ProgramResult result = run_program({"info", kModels + "llama-gqa2", "--tensors"});
  EXPECT_TRUE(says(result, "model.layers.1.mlp.gate_proj.weight")) << result.out;
  EXPECT_FALSE(says(result, "*"));
}

TEST(InfoProgram, SaysWhichLayersLookThroughAWindow) {
  EXPECT_TRUE(
      says(run_program({"info", kModels + "mistral-window4"}), "window          4 tokens\n"));
  EXPECT_TRUE(says(run_program({"info", kModels + "qwen2-window4-second-layer"}),
                   "window          4 tokens, on 1 of 2 layers\n"));
  EXPECT_TRUE(says(run_program({"info", kModels + "qwen2-window-off"}), "window          none\n"));
}

TEST(InfoProgram, DescribesTheTokenizerAndItsTemplate) {
  const TemporaryFolder folder;
  write_random_model(folder.path(), {.vocab_size = 7});
  write_file(folder.file("tokenizer.json"), R"({"version": "1.0",
      "added_tokens": [{"id": 0, "content": "<s>", "special": true, "normalized": false},
                       {"id": 6, "content": "</s>", "special": true, "normalized": false}],
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "merges": [], "vocab": {"a": 1, "b": 2, "Ġ": 3}}})");
  const std::string path = folder.path().string();
  ProgramResult result = run_program({"info", path});
  EXPECT_TRUE(says(result, "kind            byte-level BPE\n")) << result.out << result.err;
  EXPECT_TRUE(says(result, "tokens          5\n")) << result.out;
  EXPECT_TRUE(says(result, "special         <s> 0, </s> 6\n")) << result.out;
  EXPECT_TRUE(says(result, "chat template   none\n")) << result.out;

  write_file(folder.file("tokenizer_config.json"), R"({"chat_template": "<|im_start|>{{ x }}"})");
  EXPECT_TRUE(says(run_program({"info", path}),
                   "chat template   not ChatML (tokenizer_config.json: chat_template)\n"));
  write_file(folder.file("chat_template.jinja"), "[INST]");
  EXPECT_TRUE(
      says(run_program({"info", path}), "chat template   not ChatML (chat_template.jinja)\n"));
}

TEST(InfoProgram, CallsATemplateChatMlByWhatItWrites) {
  const TinyChatModel model;
  const auto of = [&](const std::string& content) {
    return "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + " + content +
           " + '<|im_end|>\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  };
  const std::vector<std::pair<std::string, std::string>> templates = {
      {of("m.content"), "ChatML (chat_template.jinja)"},
      {of("m.content | trim"), "not ChatML (chat_template.jinja)"},
      {"{{ raise_exception('<|im_start|>') }}", "not ChatML (chat_template.jinja)"},
      {"<|im_start|>{{ messages",
       "cannot be used: chat_template.jinja: line 1: expected }}, found the end of the template"},
      {"", "cannot be used: chat_template.jinja: expected a template, found nothing"}};
  const std::string path = model.folder().string();
  EXPECT_TRUE(says(run_program({"info", path}),
                   "  chat template   none; the special tokens are those of chatml\n"));
  for (const auto& [source, expected] : templates) {
    write_file(path + "/chat_template.jinja", source);
    const ProgramResult result = run_program({"info", path});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(says(result, "  chat template   " + expected + "\n")) << result.out;
    EXPECT_TRUE(says(result, "\nmemory at a context"));
  }
}

TEST(InfoProgram, DescribesASingleSafetensorsFile) {
  const ProgramResult result = run_program({"info", kModels + "llama-gqa2/trace.safetensors"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(says(result, "36 tensors, ")) << result.out;
  EXPECT_TRUE(says(result, "layers.*.attn_probs")) << result.out;
}

// For every command, with short and with long output.
TEST(InfoProgram, AndAllOthersSaySoWhereTheirOutputIsLost) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "the cat and the hat").string();
  const std::string model = TEST_DATA "/gguf/whole.gguf", tiny = TEST_DATA "/models/llama-gqa2";
  const std::string trace = tiny + "/trace.safetensors";
  const std::vector<std::vector<std::string>> commands = {
      {"info", model},
      {"peek", "the cat", "-m", model},
      {"perplexity", "-m", model, "--text", text},
      {"bench", "-m", model, "-p", "2", "-n", "0", "-r", "1", "-t", "1"},
      {"compare", trace, trace},
      {"convert", model, folder.file("out")},
      {"trace", "-m", tiny, "--ids", "1,2,3"},
      {"tokenize", "-m", model, "the cat"},
      {"story", "-m", tiny, "--ids", "1,2", "--print-ids", "-n", "2"},
      {"--help"}};
  for (const std::vector<std::string>& command : commands) {
    const ProgramResult result = run_program(command, "", "", "/dev/full");
    EXPECT_EQ(result.code, command[0] == "compare" ? 2 : 1) << command[0];
    EXPECT_TRUE(
        result.err.ends_with("stagecraft: stdout: cannot be written: No space left on device\n"))
        << command[0] << ": " << result.err;
  }
}

TEST(InfoProgram, HasNoColourWithoutATerminal) {
  EXPECT_FALSE(says(run_program({"info", kModels + "llama-gqa2"}), "\x1b"));
}

TEST(InfoProgram, ReckonsWithContextsThatNoMachineHolds) {
  const ProgramResult result =
      run_program({"info", kModels + "llama-gqa2", "--context", "1000000000"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(says(result, "memory at a context of 1,000,000,000 tokens")) << result.out;
}

TEST(InfoProgram, RefusesBadInputInOneLine) {
  const TemporaryFolder folder;
  write_file(folder.file("text"), "not a model");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"info", "/no/such/folder"},
                                             {"info", folder.path().string()},
                                             {"info", folder.file("text")}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.starts_with("stagecraft: ")) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(run_program({"info", kModels + "llama-gqa2", "--context", "0"}).code, 2);
}

}  // namespace
}  // namespace stagecraft
