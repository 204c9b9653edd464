// Every kind of step, on every backend, instruction set and number format of weights, over random
// shapes, against formulas in double precision. It prints a table of what ran.
//
// `./stage conformance` runs this with other seeds, more shapes, and kernels broken on purpose:
// STAGECRAFT_CONFORMANCE_SEED, _RANDOM (shapes per row of the table) and _BREAK (number of kernels
// to break).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "backends/cpu/cpu_pass.h"
#include "backends/large_model.h"
#include "backends/textbook/textbook_backend.h"
#include "checkpoint/model_source.h"
#include "tests/backends/conformance_cases.h"
#include "tests/backends/plan_oracle.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

std::size_t setting(const char* name, std::size_t usual) {
  const char* value = std::getenv(name);
  return value == nullptr ? usual : std::strtoull(value, nullptr, 10);
}

// broken_table breaks kernels of the first kBreakable types.
constexpr DType kTypes[] = {DType::F32,  DType::F16,    DType::BF16,   DType::Q8_0,
                            DType::Q4_0, DType::Q4_1,   DType::Q4_K,   DType::Q5_K,
                            DType::Q6_K, DType::IQ4_XS, DType::Q5_0,   DType::Q5_1,
                            DType::Q2_K, DType::Q3_K,   DType::IQ4_NL, DType::MXFP4};
constexpr std::size_t kBreakable = 10;

Logits on_textbook(const ConformanceCase& one, const Checkpoint& checkpoint, std::mt19937& random) {
  const auto backend = make_walking_backend(one.plan, checkpoint, 2);
  const auto sequence = backend->make_sequence(one.tokens.size(), 0);
  return in_cuts(one, random, [&](std::span<const TokenId> tokens, MatrixView<float> logits) {
    const Input input{sequence.get(), tokens, logits.rows()};
    backend->forward({&input, 1}, logits);
  });
}

// kept: how keys and values are stored. same: becomes false if the bits of scored rows change when
// fewer rows are scored.
Logits on_cpu(const ConformanceCase& one, const Checkpoint& checkpoint, const Kernels& table,
              WeightLayout kept, std::mt19937& random, bool& same) {
  const FusedPlan fused = fuse(one.plan);
  ThreadPool one_thread(1);
  const PackedWeights weights = pack_weights(one.plan, fused, checkpoint, one_thread);
  // Mostly one: several threads wait for each other, which takes long while other tests run.
  const std::size_t n_threads = random() % 4 == 0 ? 2 + random() % 2 : 1;
  CpuWorkspace w(one.plan, fused, table, one.tokens.size(), n_threads);
  PackedKvCache cache(one.plan.caches, one.tokens.size(), kept);
  PackedKvCache again(one.plan.caches, one.tokens.size(), kept);
  SequenceState state = cpu_state(one.plan), state_again = cpu_state(one.plan);
  return in_cuts(one, random, [&](std::span<const TokenId> tokens, MatrixView<float> logits) {
    const SequenceTokens all{&cache, tokens, tokens.size(), &state};
    cpu_pass({one.plan, fused, weights}, {&all, 1}, w, logits);
    // The same pass with fewer scored rows must give the same bits.
    const std::size_t n = random() % (tokens.size() + 1);
    const SequenceTokens some{&again, tokens, n, &state_again};
    Matrix<float> fewer(n, logits.cols());
    cpu_pass({one.plan, fused, weights}, {&some, 1}, w, fewer.view());
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = logits.row(tokens.size() - n + i);
      same = same && std::memcmp(row.data(), fewer.view().row(i).data(), row.size_bytes()) == 0;
    }
  });
}

// How a row of activations is rounded before it is multiplied with a weight.
RoundRow rounding(const Plan& plan, const Checkpoint& checkpoint, const Kernels& table) {
  return [&plan, &checkpoint, &table](WeightId id, std::span<double> row, std::span<double> doubt) {
    const Weight& weight = plan.weight(id);
    const auto layout = packed_layout(weight, *checkpoint.find(weight.name), is_large(checkpoint));
    const ActivationType type = table.matmul(layout).activation_type;
    if (type == ActivationType::Q8) round_to_bytes(row, doubt, kQuantBlock);
    if (type == ActivationType::Q8_K) round_to_bytes(row, doubt, Q8KBlock::kSize);
  };
}

// How a cache of this format is computed with by these kernels, which may round queries and
// probabilities to bf16.
CacheNumbers cache_numbers(const Kernels& table, const CacheFormat& cache) {
  const auto type = table.matmul(cache.layout).activation_type;
  return type == ActivationType::BF16 ? CacheNumbers::BF16Rows : cache.on_cpu;
}

// All that decides how kernels round, whatever the plan: the formats of rows, by the layout of the
// weights, and of the cache.
using Rounding = std::pair<std::vector<ActivationType>, CacheNumbers>;
Rounding rounding_of(const Kernels& table, const CacheFormat& cache) {
  Rounding all{{}, cache_numbers(table, cache)};
  for (const auto& matmul : table.matmuls) all.first.push_back(matmul.activation_type);
  return all;
}

// A random case, and what its backends share.
struct Drawn {
  const std::string& step;
  DType dtype;              // of the weights, or, for a step with a cache, of keys and values
  const CacheFormat* kept;  // null: a step without a cache, or whose cache has no such format
  const ConformanceCase& one;
  const Checkpoint& checkpoint;
  const PlanWeights& weights;
  std::mt19937& random;

  const CacheFormat& cache() const { return kept == nullptr ? *cache_format(DType::F32) : *kept; }
  OracleResult expected(const Kernels& table) const {
    return run_oracle(one.plan, weights, one.tokens, rounding(one.plan, checkpoint, table),
                      cache_numbers(table, cache()));
  }
};

// Draws `n` random shapes of each step and format of the first n_types, until visit(case) is false.
template <class Visit>
void draw_cases(std::size_t seed, std::size_t n, std::size_t n_types, const Visit& visit) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "case.gguf";
  for (const std::string& step : conformance_steps()) {
    for (const DType dtype : std::span(kTypes).first(n_types)) {
      const CacheFormat* kept = has_cache(step) ? cache_format(dtype) : nullptr;
      if (dtype != DType::F32 && !has_typed_weight(step) && kept == nullptr) continue;
      // These cannot have a quantised type: a block would lie along the outputs, or cross the edge
      // of the columns, and a row of taps is shorter than a block.
      const bool by_number =
          step == "transposed" || step == "linear, columns" || step == "short conv";
      if (is_quantized(dtype) && by_number) continue;
      std::mt19937 random(static_cast<std::uint32_t>(seed));
      for (std::size_t i = 0; i < n; ++i) {
        const ConformanceCase one = make_case(step, dtype, i, random, file);
        const Checkpoint checkpoint = Checkpoint::open(file);
        const PlanWeights weights = load_weights(one.plan, checkpoint);
        if (!visit(Drawn{step, dtype, kept, one, checkpoint, weights, random})) return;
      }
    }
  }
}

// One row of the table: a step, a backend, and the number format of its weights or of its cache.
struct Row {
  std::size_t shapes = 0;
  double worst = 0.0;
  std::string worst_shape;
  bool same = true;  // the bits of a row did not depend on which rows were scored

  void note(const ConformanceCase& one, double error) {
    ++shapes;
    if (!worst_shape.empty() && error <= worst) return;
    worst = error;
    worst_shape = fmt::format("{} tokens, {}", one.tokens.size(), one.shape);
  }
};
using Table = std::map<std::tuple<std::string, std::string, std::string>, Row>;

void print(const Table& results) {
  fmt::print("{:<15} {:<18} {:<6} {:>7}  {:>6}  {}\n", "step", "backend", "type", "shapes", "error",
             "where it was largest (1: what rounding allows)");
  for (const auto& [key, row] : results) {
    const auto& [step, backend, dtype] = key;
    fmt::print("{:<15} {:<18} {:<6} {:>7}  {:>6.3f}  {}\n", step, backend, dtype, row.shapes,
               row.worst, row.worst_shape);
  }
}

TEST(Conformance, EveryStepOnEveryBackendIsItsFormula) {
  const std::size_t seed = setting("STAGECRAFT_CONFORMANCE_SEED", 1);
  const std::size_t shapes = setting("STAGECRAFT_CONFORMANCE_RANDOM", 4);
  Table results;
  draw_cases(seed, shapes, std::size(kTypes), [&](const Drawn& drawn) {
    const auto& [step, dtype, kept, one, checkpoint, weights, random] = drawn;
    const auto row_of = [&](const std::string& backend) -> Row& {
      return results[{step, backend, std::string(dtype_name(dtype))}];
    };
    if (kept == nullptr || kept->on_cpu == CacheNumbers::Exact) {
      const OracleResult exact = run_oracle(one.plan, weights, one.tokens);
      row_of("textbook").note(one, relative_error(on_textbook(one, checkpoint, random), exact));
    }
    const CacheFormat& cache = drawn.cache();
    std::map<Rounding, OracleResult> expected;
    for (const Kernels* table : runnable_kernels()) {
      OracleResult& of_this = expected[rounding_of(*table, cache)];
      if (of_this.logits.empty()) of_this = drawn.expected(*table);
      Row& row = row_of(fmt::format("cpu {}", table->name));
      const Logits got = on_cpu(one, checkpoint, *table, cache.layout, random, row.same);
      row.note(one, relative_error(got, of_this));
    }
    return true;
  });
  print(results);
  for (const auto& [key, row] : results) {
    const auto& [step, backend, dtype] = key;
    EXPECT_LE(row.worst, 1.0) << step << " on " << backend << ", " << dtype << ": "
                              << row.worst_shape << " (seed " << seed << ")";
    EXPECT_TRUE(row.same) << step << " on " << backend << ", " << dtype
                          << ": a row's bits depend on which others are scored";
  }
}

TEST(Conformance, HasACaseOfEveryKindOfStep) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  std::vector<bool> found(std::variant_size_v<StepKind>);
  for (const std::string& name : conformance_steps()) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto one = make_case(name, DType::F32, i, random, folder.path() / "case.gguf");
      for (const Step& step : one.plan.steps) found[step.kind.index()] = true;
    }
  }
  for (std::size_t kind = 0; kind < found.size(); ++kind) {
    EXPECT_TRUE(found[kind]) << "alternative " << kind << " of StepKind is in no case";
  }
}

// ---- kernels broken on purpose -----------------------------------------------------------------

const Kernels* good = nullptr;  // the broken kernels call this table

// Each tile of a layout, whatever its number of rows, goes through `broken`.
template <WeightLayout kLayout, auto broken>
void break_tiles(Kernels& table) {
  constexpr auto layout = static_cast<std::size_t>(kLayout);
  table.matmuls[layout].tile = [](const TileArgs& args, std::size_t n_rows) {
    broken([](const TileArgs& changed, std::size_t n) { good->matmul(kLayout).tile(changed, n); },
           args, n_rows);
  };
}

Kernels broken_table(std::size_t which) {
  Kernels table = *good;
  switch (which) {
    case 0:  // the last number of a row is not normed
      table.rms_norm = [](const float* x, const float* w, std::size_t n, float eps, float* out) {
        const float last = x[n - 1];
        good->rms_norm(x, w, n, eps, out);
        out[n - 1] = last;
      };
      break;
    case 1:  // eps is left out
      table.rms_norm = [](const float* x, const float* w, std::size_t n, float, float* out) {
        good->rms_norm(x, w, n, 0.0f, out);
      };
      break;
    case 2:  // pairs are rotated in the other direction
      table.rope[0] = [](const float* x, const float* cos, const float* sin, std::size_t half,
                         float* out) {
        std::vector<float> back(sin, sin + half);
        for (float& value : back) value = -value;
        good->rope[0](x, cos, back.data(), half, out);
      };
      break;
    case 3:  // silu instead of gelu
      table.activate[1] = table.activate[0];
      break;
    case 4:  // the last number of up is left out
      table.activate[0] = [](const float* gate, const float* up, std::size_t n, float* out) {
        good->activate[0](gate, up, n - 1, out);
        out[n - 1] = gate[n - 1];
      };
      break;
    case 5:  // only whole vectors of eight are added
      table.add = [](const float* y, std::size_t n, float* x) { good->add(y, n / 8 * 8, x); };
      break;
    case 6:  // a part of the earlier sum is lost
      table.softmax_block = [](float* scores, std::size_t n, float scale, float* max, float* sum) {
        const float before = *sum;
        const float factor = good->softmax_block(scores, n, scale, max, sum);
        *sum -= before * factor * 0.01f + 0.001f;
        return factor;
      };
      break;
    case 7:  // the scale of scores is forgotten
      table.softmax_block = [](float* scores, std::size_t n, float, float* max, float* sum) {
        return good->softmax_block(scores, n, 1.0f, max, sum);
      };
      break;
    case 8:  // scores are capped without their scale
      table.soft_cap = [](float* x, std::size_t n, float, float cap) {
        good->soft_cap(x, n, 1.0f, cap);
      };
      break;
    case 9:  // scores are clipped instead of capped
      table.soft_cap = [](float* x, std::size_t n, float scale, float cap) {
        for (std::size_t i = 0; i < n; ++i) x[i] = std::clamp(scale * x[i], -cap, cap);
      };
      break;
    case 10:  // the last input is left out
      break_tiles<WeightLayout::F32, [](Tile tile, TileArgs args, std::size_t n) {
        --args.inputs;
        tile(args, n);
      }>(table);
      break;
    case 11:  // all rows are the first row
      break_tiles<WeightLayout::F32, [](Tile tile, TileArgs args, std::size_t n) {
        args.row_stride = 0;
        tile(args, n);
      }>(table);
      break;
    case 12:  // the earlier sum is overwritten
      break_tiles<WeightLayout::F32, [](Tile tile, TileArgs args, std::size_t n) {
        args.add = false;
        tile(args, n);
      }>(table);
      break;
    case 13:  // the scale of the first block is used for all
      break_tiles<WeightLayout::Q8_0, [](Tile tile, TileArgs args, std::size_t n) {
        const std::vector<float> scales(kMostTileRows * args.block_stride, args.scales[0]);
        args.scales = scales.data();
        tile(args, n);
      }>(table);
      break;
    case 14:  // bytes are cut off, not rounded
      table.to_q8 = [](const float* x, std::size_t n, std::int8_t* bytes, float* scales,
                       BlockSums* sums) {
        good->to_q8(x, n, bytes, scales, sums);
        for (std::size_t b = 0; b < n / kQuantBlock; ++b) {
          sums[b] = {};
          for (std::size_t i = 0; i < kQuantBlock; ++i) {
            const std::size_t at = b * kQuantBlock + i;
            bytes[at] = static_cast<std::int8_t>(x[at] / scales[b]);
            sums[b].all += bytes[at];
            if (i < kQuantBlock / 2) sums[b].first_half += bytes[at];
          }
        }
      };
      break;
    case 15:  // the earlier sum is not scaled enough
      table.scale = [](float factor, std::size_t n, float* x) {
        good->scale(std::max(factor, 0.5f), n, x);
      };
      break;
    case 16:  // the variance is that of a padded vector
      table.layer_norm = [](const float* x, const float* w, const float* b, std::size_t n,
                            float eps, float* out) {
        const float whole = static_cast<float>((n + 7) / 8 * 8) / static_cast<float>(n);
        std::vector<float> less(n, std::sqrt(whole));
        for (std::size_t i = 0; w != nullptr && i < n; ++i) less[i] *= w[i];
        good->layer_norm(x, less.data(), b, n, eps, out);
      };
      break;
    case 17:  // the bias of the norm is left out
      table.layer_norm = [](const float* x, const float* w, const float*, std::size_t n, float eps,
                            float* out) { good->layer_norm(x, w, nullptr, n, eps, out); };
      break;
    case 18:  // the tanh form of gelu instead of the exact one
      table.activate[2] = table.activate[1];
      break;
    case 19:  // ALiBi without the scale of the scores
      table.alibi = [](float* x, std::size_t n, float, float slope, float first) {
        good->alibi(x, n, 1.0f, slope, first);
      };
      break;
    case 20:  // ALiBi: each eight positions begin again at the first
      table.alibi = [](float* x, std::size_t n, float scale, float slope, float first) {
        for (std::size_t i = 0; i < n; i += 8) {
          good->alibi(x + i, std::min<std::size_t>(8, n - i), scale, slope, first);
        }
      };
      break;
    case 21:  // ReLU returns its input
      table.activate[3] = [](const float* gate, const float*, std::size_t n, float* out) {
        std::copy_n(gate, n, out);
      };
      break;
    case 22:  // rope: pairs of halves instead of neighbours
      table.rope[1] = table.rope[0];
      break;
    case 23:  // negative numbers are not clipped
      table.clip = [](float* x, std::size_t n, float limit) {
        for (std::size_t i = 0; i < n; ++i) x[i] = std::min(x[i], limit);
      };
      break;
    case 24:  // every expert has the share 1
      table.add_scaled = [](float, const float* y, std::size_t n, float* x) {
        good->add_scaled(1.0f, y, n, x);
      };
      break;
    case 25:  // the last expert's result overwrites those before it
      table.add_scaled = [](float factor, const float* y, std::size_t n, float* x) {
        std::fill_n(x, n, 0.0f);
        good->add_scaled(factor, y, n, x);
      };
      break;
    case 26:  // a convolution keeps only its last tap
      table.add_product = [](const float* y, const float* z, std::size_t n, float* x) {
        std::fill_n(x, n, 0.0f);
        good->add_product(y, z, n, x);
      };
      break;
    case 27:  // the taps of the first eight columns are used for all
      table.add_product = [](const float* y, const float* z, std::size_t n, float* x) {
        for (std::size_t i = 0; i < n; i += 8) {
          good->add_product(y, z + i, std::min<std::size_t>(8, n - i), x + i);
        }
      };
      break;
    case 28:  // silu instead of sigmoid
      table.activate[4] = table.activate[0];
      break;
    case 29:  // up is left out
      table.activate[5] = [](const float* gate, const float*, std::size_t n, float* out) {
        good->activate[5](gate, nullptr, n, out);
      };
      break;
    case 30:  // the state does not fade
      table.delta_rule = [](const DeltaArgs& args) {
        DeltaArgs all = args;
        all.kept = 1.0f;
        good->delta_rule(all);
      };
      break;
    case 31:  // the last key is left out
      table.delta_rule = [](const DeltaArgs& args) {
        DeltaArgs fewer = args;
        --fewer.n_keys;
        good->delta_rule(fewer);
      };
      break;
    case 32:  // the state is forgotten before it is read
      table.delta_rule = [](const DeltaArgs& args) {
        std::fill_n(args.state, args.n_keys * kPanelOutputs, 0.0f);
        good->delta_rule(args);
      };
      break;
    case 33:  // the mean of the squares instead of their sum
      table.l2_norm = [](const float* x, std::size_t n, float eps, float scale, float* out) {
        good->l2_norm(x, n, eps, scale * std::sqrt(static_cast<float>(n)), out);
      };
      break;
    case 34:  // up is not clipped from below
      table.clamped_swiglu = [](const float* gate, const float* up, std::size_t n, float alpha,
                                float limit, float* out) {
        std::vector<float> low(up, up + n);
        for (float& value : low) value = std::min(value, limit);
        for (std::size_t i = 0; i < n; ++i) {
          const float g = std::min(gate[i], limit);
          out[i] = g / (1.0f + std::exp(-alpha * g)) * (low[i] + 1.0f);
        }
      };
      break;
    case 35:  // both halves of a block have the same sum
      table.to_q8 = [](const float* x, std::size_t n, std::int8_t* bytes, float* scales,
                       BlockSums* sums) {
        good->to_q8(x, n, bytes, scales, sums);
        for (std::size_t b = 0; b < n / kQuantBlock; ++b) sums[b].first_half = sums[b].all / 2;
      };
      if (good->to_q8_k == nullptr) break;
      table.to_q8_k = [](const float* x, std::size_t n, Q8KBlock* out) {
        good->to_q8_k(x, n, out);
        for (std::size_t b = 0; b < n / Q8KBlock::kSize; ++b) {
          for (BlockSums& sums : out[b].sums) sums.first_half = sums.all / 2;
        }
      };
      break;
    case 36:  // in a cache of bytes, the value of the last position is left out
      break_tiles<WeightLayout::Q8ByInput, [](Tile tile, TileArgs args, std::size_t n) {
        --args.inputs;
        tile(args, n);
      }>(table);
      break;
    default:
      break;
  }
  return table;
}
constexpr std::size_t kBroken = 37;

// Each case is computed with every broken table that none of the cases before has told from a good
// one.
TEST(Conformance, NoticesEveryKernelThatIsBrokenOnPurpose) {
  good = runnable_kernels().back();
  const std::size_t seed = setting("STAGECRAFT_CONFORMANCE_SEED", 1);
  const std::size_t shapes = setting("STAGECRAFT_CONFORMANCE_RANDOM", 4);
  const std::size_t count = std::min(setting("STAGECRAFT_CONFORMANCE_BREAK", kBroken), kBroken);
  std::vector<std::string> noticed(count);
  draw_cases(seed, shapes, kBreakable, [&](const Drawn& drawn) {
    const CacheFormat& cache = drawn.cache();
    const OracleResult expected = drawn.expected(*good);
    bool all = true;
    for (std::size_t which = 0; which < count; ++which) {
      if (!noticed[which].empty()) continue;
      const Kernels table = broken_table(which);
      bool same = true;
      const Logits got =
          on_cpu(drawn.one, drawn.checkpoint, table, cache.layout, drawn.random, same);
      const double error = relative_error(got, expected);
      if (error > 1.0) {
        noticed[which] = fmt::format("{}, {}: {:.3g}", drawn.step, dtype_name(drawn.dtype), error);
      }
      all = all && error > 1.0;
    }
    return !all;
  });
  for (std::size_t which = 0; which < count; ++which) {
    const bool missed = noticed[which].empty();
    fmt::print("broken kernel {:>2}: {}\n", which, missed ? "NOT NOTICED" : noticed[which]);
    EXPECT_FALSE(missed) << "broken kernel " << which;
  }
}

}  // namespace
}  // namespace stagecraft
