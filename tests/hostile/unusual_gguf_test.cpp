// Right GGUF files that differ from those of tests/data/gguf.
#include <gtest/gtest.h>

#include "tests/hostile/raw_gguf.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kFolder = TEST_DATA "/gguf/";

// llama.cpp's scripts leave these keys out. The model is the same without them.
TEST(UnusualGguf, IsTheSameWithoutWhatLlamaCppsScriptsLeaveOut) {
  const TemporaryFolder folder;
  const struct {
    const char *name, *key;
  } rows[] = {{"gpt2-tied", "gpt2.attention.head_count_kv"},
              {"gpt2-tied", "gpt2.rope.freq_base"},
              {"gpt-neox-parallel", "gptneox.attention.head_count_kv"},
              {"gpt-neox-parallel", "gptneox.rope.freq_base"},
              {"bloom-4-heads", "bloom.rope.freq_base"}};
  for (const auto& [name, key] : rows) {
    RawGguf raw = RawGguf::read(kFolder + name + ".gguf");
    const std::size_t n = raw.pairs.size();
    raw.erase(key);
    ASSERT_EQ(raw.pairs.size(), n - 1) << key;
    write_file(folder.file("less.gguf"), raw.bytes());
    EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("less.gguf"))),
                          logits_of(textbook_engine(kFolder + name + ".gguf"))))
        << key;
  }
}

// A last layer that predicts a second token takes no part.
TEST(UnusualGguf, LeavesOutLayersThatPredictFurtherTokens) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "qwen3_5-long-keys.gguf");
  raw.set("qwen35.block_count", u32(5));
  raw.set("qwen35.nextn_predict_layers", u32(1));
  const std::vector<float> norm(20, 1.0f);
  for (const char* name : {"blk.4.attn_norm.weight", "blk.4.nextn.hnorm.weight"}) {
    raw.data.resize((raw.data.size() + 31) / 32 * 32);
    raw.tensors.push_back({name, {norm.size()}, 0, raw.data.size()});
    raw.data.append(reinterpret_cast<const char*>(norm.data()), norm.size() * sizeof(float));
  }
  raw.data.resize((raw.data.size() + 31) / 32 * 32);
  write_file(folder.file("more.gguf"), raw.bytes());
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("more.gguf"))),
                        logits_of(textbook_engine(kFolder + "qwen3_5-long-keys.gguf"))));
}

}  // namespace
}  // namespace stagecraft
