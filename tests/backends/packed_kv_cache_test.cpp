// Keys and values in panels: what is stored, and what attention computes with them, with the
// kernels of every instruction set that this processor runs.
#include "backends/cpu/packed_kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "backends/cpu/cpu_pass.h"
#include "base/round_up.h"
#include "model/description.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"
#include "tests/support/random_model.h"

namespace stagecraft {
namespace {

constexpr WeightLayout kKinds[] = {WeightLayout::F32, WeightLayout::F16, WeightLayout::RoundedBF16,
                                   WeightLayout::Q8_0};

// Two layers.
std::vector<CacheShape> shapes_of(std::size_t head_dim) { return {{3, head_dim}, {3, head_dim}}; }

TEST(PackedKvCacheBytes, AreThoseOfAllChunksThatArePartlyUsed) {
  const std::size_t heads = 2 * 3;
  // Bytes per position of a head: key + value. Values are stored in panels of 32 numbers; in q8_0,
  // each 32 bytes have a scale.
  const double a_head_of_64[] = {64 * 4 + 64 * 4, 64 * 2 + 64 * 2, 64 * 2 + 64 * 2,
                                 2 * (32 + 2) + 2 * (4 + 32)};
  const double a_head_of_48[] = {48 * 4 + 64 * 4, 48 * 2 + 64 * 2, 64 * 2 + 64 * 2,
                                 2 * (32 + 2) + 2 * (4 + 32)};
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    EXPECT_EQ(packed_kv_cache_bytes(shapes_of(64), 64, kKinds[i]), 64.0 * heads * a_head_of_64[i]);
    EXPECT_EQ(packed_kv_cache_bytes(shapes_of(48), 65, kKinds[i]), 128.0 * heads * a_head_of_48[i]);
    PackedKvCache cache(shapes_of(48), 65, kKinds[i]);
    ASSERT_TRUE(cache.reserve(65));
    EXPECT_EQ(cache.keys(0, 0, 1).panels - cache.keys(0, 0, 0).panels,
              packed_kv_cache_bytes(shapes_of(48), 64, kKinds[i]));
  }
}

class EveryCache
    : public testing::TestWithParam<std::tuple<WeightLayout, std::size_t, const Kernels*>> {
 protected:
  // The 32 outputs of a panel for one row of floats.
  std::vector<float> product(const PanelMatrix& m, std::size_t panel,
                             const std::vector<float>& row) const {
    const MatmulKernel& kernel = k_.matmul(m.layout);
    std::vector<std::int8_t> bytes(row.size());
    std::vector<float> scales(row.size() / kQuantBlock + 1), out(kPanelOutputs);
    std::vector<BlockSums> sums(scales.size());
    std::vector<std::uint16_t> halves(row.size());
    const void* data = row.data();
    if (kernel.activation_type == ActivationType::Q8) {
      k_.to_q8(row.data(), row.size(), bytes.data(), scales.data(), sums.data());
      data = bytes.data();
    } else if (kernel.activation_type == ActivationType::BF16) {
      k_.to_bf16(row.data(), row.size(), halves.data());
      data = halves.data();
    }
    kernel.tile({m.panel(panel), m.inputs, data, row.size(), scales.data(), sums.data(),
                 row.size() / kQuantBlock, out.data(), kPanelOutputs},
                1);
    return out;
  }
  std::vector<float> some_head(float size) {
    std::normal_distribution<float> normal(0.0f, size);
    std::vector<float> head(head_dim_);
    for (float& number : head) number = normal(engine_);
    return head;
  }
  // How far a number may be from the stored one. top: the largest of the 32 that share a scale.
  float tolerance(float number, float top, bool key) const {
    if (kind_ == WeightLayout::F32) return 0.0f;
    if (kind_ == WeightLayout::F16) return std::abs(number) * 0x1p-11f + 0x1p-25f;
    if (kind_ == WeightLayout::RoundedBF16) return std::abs(number) * 0x1p-8f;
    // Half a step. The scale of a key is rounded to f16, and a byte multiplies this error by up to
    // 127. The last term is rounding of floats.
    const float step = top / 127.0f;
    return step * (0.5f + (key ? 127.0f * 0x1p-11f : 0.0f)) + std::abs(number) * 0x1p-21f;
  }
  float top(const std::vector<float>& head, std::size_t d) const {
    float largest = 0.0f;
    const std::size_t begin = d / kQuantBlock * kQuantBlock;
    for (std::size_t i = begin; i < std::min(begin + kQuantBlock, head_dim_); ++i) {
      largest = std::max(largest, std::abs(head[i]));
    }
    return largest;
  }

  const WeightLayout kind_ = std::get<0>(GetParam());
  const std::size_t head_dim_ = std::get<1>(GetParam());
  const Kernels& k_ = *std::get<2>(GetParam());
  std::mt19937 engine_{5};
};

// Reads each number with a kernel, as attention does: by a row that is 1 at its place and else 0.
TEST_P(EveryCache, GivesBackEachNumberAsExactlyAsItsKindCan) {
  constexpr std::size_t kPositions = 70;
  PackedKvCache cache(shapes_of(head_dim_), kPositions, kind_);
  ASSERT_TRUE(cache.reserve(kPositions));
  std::vector<std::vector<float>> keys, values;
  for (std::size_t p = 0; p < kPositions; ++p) {
    keys.push_back(some_head(p % 3 == 0 ? 40.0f : 0.3f));
    values.push_back(some_head(p % 4 == 0 ? 0.001f : 2.0f));
    cache.put(k_, 1, 2, p, keys.back().data(), values.back().data());
  }
  for (std::size_t chunk = 0; chunk < 2; ++chunk) {
    const std::size_t first = chunk * PackedKvCache::kChunk;
    const std::size_t used = std::min(PackedKvCache::kChunk, kPositions - first);
    const PanelMatrix k = cache.keys(1, 2, chunk), v = cache.values(1, 2, chunk, used);
    for (std::size_t d = 0; d < head_dim_; ++d) {
      std::vector<float> one(k.inputs);
      one[d] = 1.0f;
      for (std::size_t p = 0; p < used; ++p) {
        if (p % kPanelOutputs != 0) continue;
        const auto got = product(k, p / kPanelOutputs, one);
        for (std::size_t i = 0; i < kPanelOutputs && p + i < used; ++i) {
          const auto& head = keys[first + p + i];
          ASSERT_NEAR(got[i], head[d], tolerance(head[d], top(head, d), true))
              << "key " << first + p + i << ", number " << d;
        }
      }
    }
    for (std::size_t p = 0; p < used; ++p) {
      std::vector<float> one(v.inputs);
      one[p] = 1.0f;
      const auto& head = values[first + p];
      for (std::size_t d = 0; d < head_dim_; ++d) {
        if (d % kPanelOutputs != 0) continue;
        const auto got = product(v, d / kPanelOutputs, one);
        for (std::size_t i = 0; i < kPanelOutputs && d + i < head_dim_; ++i) {
          ASSERT_NEAR(got[i], head[d + i], tolerance(head[d + i], top(head, d + i), false))
              << "value " << first + p << ", number " << d + i;
        }
      }
    }
  }
}

// A chat that goes back overwrites the positions that it forgets: no byte of them may stay.
TEST_P(EveryCache, KeepsNothingOfWhatItIsWrittenOver) {
  const auto shapes = shapes_of(head_dim_);
  PackedKvCache fresh(shapes, 64, kind_), used(shapes, 64, kind_);
  ASSERT_TRUE(fresh.reserve(64) && used.reserve(64));
  for (std::size_t p = 0; p < 64; ++p) {
    used.put(k_, 0, 1, p, some_head(1000.0f).data(), some_head(1000.0f).data());
  }
  for (std::size_t p = 0; p < 64; ++p) {
    const auto key = some_head(0.01f), value = some_head(0.01f);
    used.put(k_, 0, 1, p, key.data(), value.data());
    fresh.put(k_, 0, 1, p, key.data(), value.data());
  }
  const auto bytes = static_cast<std::size_t>(packed_kv_cache_bytes(shapes, 64, kind_)) / (2 * 3);
  EXPECT_EQ(std::memcmp(fresh.keys(0, 1, 0).panels, used.keys(0, 1, 0).panels, bytes), 0);
}

// A page may still hold anything of an earlier text in positions that the next text has not
// written.
TEST_P(EveryCache, TakesNothingOfAnEarlierText) {
  PackedKvCache cache(shapes_of(head_dim_), 64, kind_);
  ASSERT_TRUE(cache.reserve(64));
  const std::vector<float> no_numbers(head_dim_, NAN);
  for (std::size_t p = 0; p < 64; ++p) cache.put(k_, 0, 1, p, no_numbers.data(), no_numbers.data());
  cache.advance(64);
  cache.truncate(0);
  ASSERT_TRUE(cache.reserve(1));
  const std::vector<float> head(head_dim_, 1.0f);
  cache.put(k_, 0, 1, 0, head.data(), head.data());
  const PanelMatrix values = cache.values(0, 1, 0, 1);
  std::vector<float> one(values.inputs);
  one[0] = 1.0f;
  EXPECT_NEAR(product(values, 0, one)[0], 1.0f, 1e-6f);
}

std::string name_of(WeightLayout kind) {
  if (kind == WeightLayout::F32) return "f32";
  if (kind == WeightLayout::F16) return "f16";
  return kind == WeightLayout::RoundedBF16 ? "bf16" : "q8_0";
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCache,
                         testing::Combine(testing::ValuesIn(kKinds), testing::Values(8, 48, 64),
                                          testing::ValuesIn(runnable_kernels())),
                         [](const auto& parameter) {
                           return fmt::format("{}_{}_{}", name_of(std::get<0>(parameter.param)),
                                              std::get<1>(parameter.param),
                                              std::get<2>(parameter.param)->name);
                         });

// ---- pages --------------------------------------------------------------------------------------

// Caches of one key head that share 8 pages: enough for two full caches of 4 pages.
class SharedPages : public testing::Test {
 protected:
  static constexpr std::size_t kPositions = 250;

  PackedKvCache make_cache() const { return {shapes_, kPositions, WeightLayout::F32, pages_}; }
  // Appends positions up to `end`, with `number` in every element.
  static void write(PackedKvCache& cache, std::size_t end, float number) {
    ASSERT_TRUE(cache.reserve(end));
    const std::vector<float> head(kHeadDim, number);
    for (std::size_t p = cache.length(); p < end; ++p) {
      cache.put(kernels(), 0, 0, p, head.data(), head.data());
    }
    cache.advance(end - cache.length());
  }
  // The first number of a key.
  static float key(const PackedKvCache& cache, std::size_t position) {
    const std::size_t at = position % PackedKvCache::kChunk;
    const PanelMatrix keys = cache.keys(0, 0, position / PackedKvCache::kChunk);
    float number = 0.0f;
    std::memcpy(&number, keys.panel(at / kPanelOutputs) + at % kPanelOutputs * sizeof number,
                sizeof number);
    return number;
  }

  static constexpr std::size_t kHeadDim = 8;
  const std::vector<CacheShape> shapes_ = {{1, kHeadDim}};
  const std::shared_ptr<KvPages> pages_ = make_kv_pages(shapes_, kPositions, WeightLayout::F32, 2);
};

TEST_F(SharedPages, HoldABeginningOnceUntilOneOfTheTextsWritesIntoItsLastPage) {
  PackedKvCache a = make_cache(), b = make_cache();
  write(a, 130, 1.0f);
  EXPECT_EQ(pages_->n_free(), 5u);
  ASSERT_TRUE(b.copy(a, 130));
  EXPECT_EQ(pages_->n_free(), 5u);
  EXPECT_EQ(a.keys(0, 0, 2).panels, b.keys(0, 0, 2).panels);
  write(b, 140, 2.0f);
  EXPECT_EQ(pages_->n_free(), 4u);
  EXPECT_EQ(a.keys(0, 0, 1).panels, b.keys(0, 0, 1).panels);
  EXPECT_NE(a.keys(0, 0, 2).panels, b.keys(0, 0, 2).panels);
  EXPECT_EQ(key(b, 129), 1.0f);
  EXPECT_EQ(key(b, 130), 2.0f);
  write(a, 140, 3.0f);  // a is now the only holder of the page
  EXPECT_EQ(pages_->n_free(), 4u);
  EXPECT_EQ(key(a, 130), 3.0f);
  EXPECT_EQ(key(b, 130), 2.0f);
}

TEST_F(SharedPages, AreCopiedWhereATextGoesBackIntoOneAndWrites) {
  PackedKvCache a = make_cache(), b = make_cache();
  write(a, 200, 1.0f);
  ASSERT_TRUE(b.copy(a, 200));
  b.truncate(70);
  EXPECT_EQ(pages_->n_free(), 4u);
  write(b, 71, 2.0f);
  EXPECT_EQ(key(a, 70), 1.0f);
  EXPECT_EQ(key(b, 69), 1.0f);
  EXPECT_EQ(key(b, 70), 2.0f);
}

TEST_F(SharedPages, GoBackWhenNobodyHoldsThem) {
  PackedKvCache a = make_cache();
  {
    PackedKvCache b = make_cache();
    write(a, 65, 1.0f);
    ASSERT_TRUE(b.copy(a, 65));
    a.truncate(0);
    EXPECT_EQ(pages_->n_free(), 6u);
  }
  EXPECT_EQ(pages_->n_free(), 8u);
}

TEST_F(SharedPages, GoBackAfterAPassThatReservedThemAndFailed) {
  PackedKvCache a = make_cache();
  write(a, 65, 1.0f);
  ASSERT_TRUE(a.reserve(kPositions));
  a.truncate(65);
  EXPECT_EQ(pages_->n_free(), 6u);
  ASSERT_TRUE(a.reserve(kPositions));
  a.truncate(0);
  EXPECT_EQ(pages_->n_free(), 8u);
}

TEST_F(SharedPages, AreRefusedWhereNoneIsLeft) {
  PackedKvCache a = make_cache(), b = make_cache(), c = make_cache();
  write(a, kPositions, 1.0f);
  write(b, 192, 2.0f);
  write(c, 64, 3.0f);
  EXPECT_TRUE(c.reserve(64));
  EXPECT_FALSE(c.reserve(65));
  ASSERT_TRUE(c.copy(b, 180));
  EXPECT_FALSE(pages_->n_free() == 0);
  write(b, 250, 2.0f);
  EXPECT_FALSE(c.reserve(181)) << "its last page is that of another, too";
  EXPECT_EQ(c.length(), 180u);
  EXPECT_EQ(key(c, 179), 2.0f);
  a.truncate(249);
  EXPECT_FALSE(c.reserve(181));
  a.truncate(192);
  EXPECT_TRUE(c.reserve(181));
}

TEST_F(SharedPages, OfAnotherMemoryAreCopied) {
  PackedKvCache a = make_cache(), other(shapes_, kPositions, WeightLayout::F32);
  write(a, 100, 1.0f);
  ASSERT_TRUE(other.copy(a, 99));
  EXPECT_NE(a.keys(0, 0, 0).panels, other.keys(0, 0, 0).panels);
  EXPECT_EQ(key(other, 98), 1.0f);
  EXPECT_EQ(other.length(), 99u);
}

TEST_F(SharedPages, AreNotCopiedIntoACacheThatIsTooSmall) {
  PackedKvCache a = make_cache(), small(shapes_, 70, WeightLayout::F32, pages_);
  write(a, 100, 1.0f);
  EXPECT_FALSE(small.copy(a, 71));
  EXPECT_FALSE(small.copy(a, 101));  // a has no more than 100
  EXPECT_EQ(small.length(), 0u);
  EXPECT_TRUE(small.copy(a, 70));
}

// ---- attention ----------------------------------------------------------------------------------

using Numbers = std::vector<double>;  // of a head

// The attention of one query to keys and values. magnitude: the same with absolute values.
struct Attended {
  Numbers probabilities, out, magnitude;
  double largest_score = 0.0;  // with absolute values, too
};
Attended attend(const Numbers& query, const std::vector<Numbers>& keys,
                const std::vector<Numbers>& values) {
  const std::size_t head_dim = query.size();
  Attended result{Numbers(keys.size()), Numbers(head_dim), Numbers(head_dim)};
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  for (std::size_t j = 0; j < keys.size(); ++j) {
    double score = 0.0, magnitude = 0.0;
    for (std::size_t d = 0; d < head_dim; ++d) {
      score += query[d] * keys[j][d];
      magnitude += std::abs(query[d] * keys[j][d]);
    }
    result.probabilities[j] = std::exp(scale * score);
    result.largest_score = std::max(result.largest_score, scale * magnitude);
  }
  const double total =
      std::accumulate(result.probabilities.begin(), result.probabilities.end(), 0.0);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    result.probabilities[j] /= total;
    for (std::size_t d = 0; d < head_dim; ++d) {
      result.out[d] += result.probabilities[j] * values[j][d];
      result.magnitude[d] += result.probabilities[j] * std::abs(values[j][d]);
    }
  }
  return result;
}

class RoundedAttention : public testing::TestWithParam<const Kernels*> {
 protected:
  struct Head {
    Numbers exact, rounded, off;  // off: how far the two may differ
  };
  // half: whether scales are rounded to f16, as for keys.
  Head head_of(const float* x, std::size_t head_dim, bool half) const {
    std::vector<float> filled(round_up(head_dim, kQuantBlock));
    std::copy_n(x, head_dim, filled.begin());
    std::vector<std::int8_t> bytes(filled.size());
    std::vector<float> scales(filled.size() / kQuantBlock);
    std::vector<BlockSums> sums(scales.size());
    GetParam()->to_q8(filled.data(), filled.size(), bytes.data(), scales.data(), sums.data());
    Head head;
    for (std::size_t d = 0; d < head_dim; ++d) {
      const float step = scales[d / kQuantBlock];
      float scale = step;
      if (half) {
        std::uint16_t bits;
        f32_to_f16({&step, 1}, {&bits, 1});
        f16_to_f32({&bits, 1}, {&scale, 1});
      }
      head.exact.push_back(x[d]);
      head.rounded.push_back(static_cast<double>(scale) * bytes[d]);
      head.off.push_back(static_cast<double>(step) * (0.5 + 1e-5 + (half ? 127.0 * 0x1p-11 : 0)));
    }
    return head;
  }
};

// A whole pass of one layer with a cache of bytes. Its attention must equal attention in double
// precision with the rounded queries, keys and values, except for rounding of floats. And it may
// differ from attention with exact ones only as much as this rounding allows:
//
//   a score is off by at most  delta = max_j sum_d (|q| e_k + |k| e_q + e_q e_k) / sqrt(head_dim),
//   so a probability by a factor of at most e^(2 delta),
//   so a number by at most     e^(2 delta) * sum_j p_j e_v  +  (e^(2 delta) - 1) * sum_j p_j |v|
TEST_P(RoundedAttention, IsThatOfTheBytesAndAsNearToTheExactAsTheyAre) {
  const Kernels& k = *GetParam();
  for (const std::size_t dim : {192, 256}) {  // heads of 48, which are padded, and of 64
    const TemporaryFolder folder;
    write_random_model(folder.path(), {.dim = dim, .n_layers = 1});
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    const ModelDescription description = describe_model(folder.path());
    const Plan& plan = description.plan;
    const Config& config = *description.config;
    const FusedPlan fused = fuse(plan);
    ThreadPool one_thread(1);
    const PackedWeights weights = pack_weights(plan, fused, checkpoint, one_thread);
    std::vector<TokenId> ids(100);
    std::mt19937 engine(3);
    for (TokenId& id : ids) id = static_cast<TokenId>(engine() % config.vocab_size);
    PackedKvCache cache(plan.caches, ids.size(), WeightLayout::Q8_0);
    CpuWorkspace w(plan, fused, k, ids.size(), 1);
    Matrix<float> logits(ids.size(), config.vocab_size);  // all are scored, so all attend
    const SequenceTokens one{&cache, ids, ids.size()};
    cpu_pass({plan, fused, weights}, {&one, 1}, w, logits.view());

    FusedAttention attention{};
    for (const FusedStep& step : fused.steps) {
      if (const auto* found = std::get_if<FusedAttention>(&step)) attention = *found;
    }
    const auto buffer = [&](BufferId id) { return w.buffers[static_cast<std::size_t>(id)].view(); };
    const auto q = buffer(attention.step.q), k_rows = buffer(attention.k);
    const auto v = buffer(attention.v), attended = buffer(attention.step.out);
    const std::size_t head_dim = config.head_dim;
    const std::size_t group = config.n_heads / config.n_kv_heads;
    double nearest = 1e30;  // the tightest case of the second bound
    for (std::size_t head = 0; head < config.n_heads; ++head) {
      std::vector<Numbers> keys, values, rounded_keys, rounded_values, keys_off, values_off;
      for (std::size_t row = 0; row < ids.size(); ++row) {
        const std::size_t at = head / group * head_dim;
        const auto turned = [&](const float* x) {
          std::vector<float> out(head_dim);
          k.rope[0](x, w.rotations[0].cos.view().row(row).data(),
                    w.rotations[0].sin.view().row(row).data(), head_dim / 2, out.data());
          return out;
        };
        const Head key = head_of(turned(&k_rows(row, at)).data(), head_dim, true);
        const Head value = head_of(&v(row, at), head_dim, false);
        keys.push_back(key.exact);
        rounded_keys.push_back(key.rounded);
        keys_off.push_back(key.off);
        values.push_back(value.exact);
        rounded_values.push_back(value.rounded);
        values_off.push_back(value.off);

        const Head query = head_of(turned(&q(row, head * head_dim)).data(), head_dim, false);
        const Attended exact = attend(query.exact, keys, values);
        const Attended rounded = attend(query.rounded, rounded_keys, rounded_values);
        double delta = 0.0;
        for (std::size_t j = 0; j <= row; ++j) {
          double off = 0.0;
          for (std::size_t d = 0; d < head_dim; ++d) {
            off += std::abs(query.exact[d]) * keys_off[j][d] +
                   (std::abs(keys[j][d]) + keys_off[j][d]) * query.off[d];
          }
          delta = std::max(delta, off / std::sqrt(static_cast<double>(head_dim)));
        }
        const double factor = std::exp(2.0 * delta);
        // A score is a sum of a few rounded blocks; a result is a sum of `row` products.
        const double floats =
            0x1p-24 * (2.0 * 8.0 * rounded.largest_score + static_cast<double>(row) + 32.0);
        for (std::size_t d = 0; d < head_dim; ++d) {
          const double got = attended(row, head * head_dim + d);
          const double by_floats = floats * rounded.magnitude[d];
          ASSERT_NEAR(got, rounded.out[d], by_floats)
              << "head " << head << ", row " << row << ", number " << d;
          double by_values = 0.0;
          for (std::size_t j = 0; j <= row; ++j) {
            by_values += exact.probabilities[j] * values_off[j][d];
          }
          const double bound = factor * by_values + (factor - 1.0) * exact.magnitude[d];
          const double off = std::abs(got - exact.out[d]);
          ASSERT_LE(off, bound + by_floats)
              << "head " << head << ", row " << row << ", number " << d;
          nearest = std::min(nearest, bound / off);
        }
      }
    }
    EXPECT_LT(nearest, 2.0) << "a bound that nothing comes near proves little";
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, RoundedAttention, testing::ValuesIn(runnable_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name); });

}  // namespace
}  // namespace stagecraft
