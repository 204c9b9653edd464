#include "programs/bench_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_workspace.h"
#include "base/ascii.h"
#include "base/large_memory.h"
#include "base/stopwatch.h"
#include "operators/k_quant_block.h"
#include "operators/kernels/ceilings.h"
#include "operators/kernels/panel_matrix.h"
#include "operators/matmul_transb.h"

namespace stagecraft {
namespace {

struct Shape {
  std::size_t rows, outputs, inputs;
};
// From SmolLM2-135M: the first linear layer of its feed-forward block with a prompt of 512 tokens,
// and its head for one token.
constexpr Shape kMany{512, 1536, 576}, kOne{1, 49152, 576};
constexpr std::size_t kSweep[] = {1, 2, 4, 8, 16, 32, 64, 512};

constexpr std::size_t kRowsOfDots = 12;  // rows per panel, as a tile has them

// The shortest time of 20 runs; of fewer runs if they are slow.
template <class Work>
double best_seconds(Work work) {
  double best = 1e30;
  for (int i = 0; i < 20 && (i < 3 || i * best < 0.2); ++i) {
    const Stopwatch watch;
    work();
    best = std::min(best, watch.seconds());
  }
  return best;
}

// Numbers to multiply. Their values do not influence the time, as long as none is subnormal. With
// this byte, all types have small normal numbers, and all products are normal.
LargeMemory some_numbers(std::size_t bytes) {
  LargeMemory memory(bytes);
  std::fill_n(memory.data(), bytes, std::byte{0x3c});
  return memory;
}

// Times multiply(panel, first row, rows): panel after panel, and for each panel all rows, at most
// `most` rows per call, as the CPU backend does.
template <class Multiply>
double time_panels(const Shape& shape, std::size_t most, Multiply multiply) {
  return best_seconds([&] {
    for (std::size_t panel = 0; panel < shape.outputs / kPanelOutputs; ++panel) {
      for (std::size_t r = 0; r < shape.rows; r += most) {
        multiply(panel, r, std::min(most, shape.rows - r));
      }
    }
  });
}

std::size_t weight_bytes(WeightLayout layout, const Shape& shape) {
  return shape.outputs / kPanelOutputs * panel_bytes(layout, shape.inputs);
}

// Rounds the inputs down to whole blocks of 256 if the layout is a K-quant.
Shape whole_blocks(Shape shape, WeightLayout layout) {
  if (panel_bytes(layout, kQuantBlock) == 0) shape.inputs -= shape.inputs % kKBlock;
  return shape;
}

LargeMemory some_panels(WeightLayout layout, const Shape& shape) {
  return some_numbers(weight_bytes(layout, shape));
}

double time_tiles(const Kernels& k, WeightLayout layout, const LargeMemory& weights,
                  const Shape& shape, std::size_t most) {
  const MatmulKernel& kernel = k.matmul(layout);
  const PanelMatrix matrix{.layout = layout,
                           .outputs = shape.outputs,
                           .inputs = shape.inputs,
                           .panels = weights.data(),
                           .stride = panel_bytes(layout, shape.inputs),
                           .prefetch = prefetch_for(SIZE_MAX)};
  const std::size_t blocks = shape.inputs / kQuantBlock;
  const std::vector<float> scales(shape.rows * blocks, 0.01f);
  const std::vector<BlockSums> sums(shape.rows * blocks, {3, 1});
  const std::size_t stride = row_stride(kernel.activation_type, shape.inputs);
  const std::size_t row_bytes = stride * bytes_of(kernel.activation_type);
  const LargeMemory rows = some_numbers(shape.rows * row_bytes);
  alignas(64) float out[kMostTileRows * kPanelOutputs];
  return time_panels(shape, most, [&](std::size_t panel, std::size_t r, std::size_t n) {
    TileArgs args{.panel = matrix.panel(panel),
                  .inputs = shape.inputs,
                  .rows = rows.data() + r * row_bytes,
                  .row_stride = stride,
                  .scales = &scales[r * blocks],
                  .sums = &sums[r * blocks],
                  .block_stride = blocks,
                  .out = out,
                  .out_stride = kPanelOutputs};
    fetch_on_the_way(args, matrix, panel, r, n, shape.rows);
    kernel.tile(args, n);
  });
}

// The same order, with one dot product per row and output.
double time_dots(float (*dot)(const float*, const float*, std::size_t), const Shape& shape) {
  const std::size_t row_bytes = shape.inputs * sizeof(float);
  const LargeMemory weights = some_numbers(shape.outputs * row_bytes);
  const LargeMemory rows = some_numbers(shape.rows * row_bytes);
  const auto row_of = [&](const LargeMemory& memory, std::size_t r) {
    return reinterpret_cast<const float*>(memory.data() + r * row_bytes);
  };
  alignas(64) float out[kRowsOfDots][kPanelOutputs];
  return time_panels(shape, kRowsOfDots, [&](std::size_t panel, std::size_t first, std::size_t n) {
    for (std::size_t o = 0; o < kPanelOutputs; ++o) {
      const float* weight = row_of(weights, panel * kPanelOutputs + o);
      for (std::size_t r = 0; r < n; ++r) {
        out[r][o] = dot(row_of(rows, first + r), weight, shape.inputs);
      }
    }
  });
}

// Stage 3's function, which takes whole matrices.
double time_textbook(const Shape& shape) {
  Matrix<float> a(shape.rows, shape.inputs), b(shape.outputs, shape.inputs);
  Matrix<float> c(shape.rows, shape.outputs);
  std::fill_n(a.data(), shape.rows * shape.inputs, 0.01f);
  std::fill_n(b.data(), shape.outputs * shape.inputs, 0.01f);
  return best_seconds([&] { matmul_transb(1.0f, a.view(), b.view(), 0.0f, c.view()); });
}

class OperatorBench {
 public:
  void run() {
    fmt::print("{}, 1 thread, the best of at most 20 runs; reads {:.1f} GB/s\n", k_.name,
               ceilings_.read * 1e-9);
    fmt::print("  {:<25} {:>24} {:>24}\n", "", "512 x 1536 x 576", "1 x 49152 x 576");
    const auto dots = [&](std::size_t rung) {
      return [&, rung](const Shape& shape) { return time_dots(k_.dot[rung], shape); };
    };
    const auto tiles = [&](WeightLayout layout, std::size_t most) {
      return [&, layout, most](const Shape& shape) {
        return time_tiles(k_, layout, some_panels(layout, shape), shape, most);
      };
    };
    compare(0, "one sum", WeightLayout::F32, dots(0));
    compare(0, "our answer to stage 3", WeightLayout::F32, time_textbook);
    compare(1, "a vector of sums", WeightLayout::F32, dots(1));
    compare(2, "four vectors", WeightLayout::F32, dots(2));
    compare(3, "panels, row by row", WeightLayout::F32, tiles(WeightLayout::F32, 1));
    for (std::size_t f = 0; f < kLayouts; ++f) {
      const auto layout = static_cast<WeightLayout>(f);
      const bool first = layout == WeightLayout::F32;
      compare(first ? 4 : 5, first ? "the tile, f32" : name_of(layout), layout,
              tiles(layout, most_rows(layout)));
    }

    fmt::print("\n  from memory, Gop/s by rows");
    for (const std::size_t rows : kSweep) fmt::print("{:>7}", rows);
    fmt::print("\n");
    for (const WeightLayout layout :
         {WeightLayout::F32, WeightLayout::BF16, WeightLayout::RoundedBF16, WeightLayout::Q8_0,
          WeightLayout::Q4_0}) {
      sweep(layout);
    }
    compare_instruction_sets();
  }

  nlohmann::json records = nlohmann::json::array();

 private:
  static std::string short_name(WeightLayout layout) {
    if (layout == WeightLayout::RoundedBF16) return "bf16r";
    if (layout == WeightLayout::Q8ByInput) return "kv q8";
    return ascii_lower(layout_name(layout));
  }
  static std::string name_of(WeightLayout layout) {
    if (layout == WeightLayout::RoundedBF16) return "bf16, rows rounded";
    if (layout == WeightLayout::Q8ByInput) return "q8_0, a cache's values";
    const bool long_blocks = panel_bytes(layout, kQuantBlock) == 0;
    return short_name(layout) + (long_blocks ? ", 512 inputs" : "");
  }
  std::size_t most_rows(WeightLayout layout) const { return k_.matmul(layout).max_rows; }

  double ceiling(WeightLayout layout) const {
    return ceilings_.operations[static_cast<std::size_t>(k_.matmul(layout).activation_type)];
  }

  // Prints one line: operations per second with many rows, bytes per second with one row.
  template <class Time>
  void compare(int rung, const std::string& name, WeightLayout layout, Time time) {
    const Shape many_rows = whole_blocks(kMany, layout), one_row = whole_blocks(kOne, layout);
    const double many = record(rung, name, layout, many_rows, time(many_rows));
    const double seconds = time(one_row);
    record(rung, name, layout, one_row, seconds);
    const auto read = static_cast<double>(weight_bytes(layout, one_row)) / seconds;
    fmt::print("  {} {:<23} {:>24} {:>24}\n", rung, name,
               fmt::format("{:.1f} Gop/s, {:.0f}%", many * 1e-9, 100.0 * many / ceiling(layout)),
               fmt::format("{:.1f} GB/s", read * 1e-9));
    std::fflush(stdout);
  }

  // A weight matrix larger than the caches of most machines, with more and more rows.
  void sweep(WeightLayout layout) {
    const std::size_t panels = (std::size_t{256} << 20) / panel_bytes(layout, kOne.inputs);
    Shape shape{1, panels * kPanelOutputs, kOne.inputs};
    const LargeMemory weights = some_panels(layout, shape);
    fmt::print("  {:<26}", name_of(layout));
    for (const std::size_t rows : kSweep) {
      shape.rows = rows;
      const double seconds = time_tiles(k_, layout, weights, shape, most_rows(layout));
      fmt::print("{:>7.0f}", record(-1, name_of(layout), layout, shape, seconds) * 1e-9);
      std::fflush(stdout);
    }
    fmt::print("\n");
  }

  // Times every kernel table that this processor can run, and marks the one in use.
  void compare_instruction_sets() const {
    fmt::print("\n  {:<13}", "512 rows");
    for (std::size_t f = 0; f < kLayouts; ++f) {
      fmt::print("{:>7}", short_name(static_cast<WeightLayout>(f)));
    }
    fmt::print("   Gop/s\n");
    for (const Kernels* table : runnable_kernels()) {
      fmt::print("{:>2}{:<13}", table == &k_ ? "* " : "", table->name);
      for (std::size_t f = 0; f < kLayouts; ++f) {
        const auto layout = static_cast<WeightLayout>(f);
        const Shape shape = whole_blocks(kMany, layout);
        const double seconds = time_tiles(*table, layout, some_panels(layout, shape), shape,
                                          table->matmul(layout).max_rows);
        fmt::print("{:>7.0f}", operations(shape) / seconds * 1e-9);
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
    fmt::print("  * in use; bf16r: rows rounded to bf16; kv q8: the values of a cache\n");
  }

  // A multiply-add counts as two operations.
  static double operations(const Shape& shape) {
    return 2.0 * static_cast<double>(shape.rows * shape.outputs * shape.inputs);
  }

  // Returns operations per second.
  double record(int rung, const std::string& name, WeightLayout layout, const Shape& shape,
                double seconds) {
    const double rate = operations(shape) / seconds;
    nlohmann::json record = {{"kernel", name},
                             {"isa", k_.name},
                             {"threads", 1},
                             {"rows", shape.rows},
                             {"outputs", shape.outputs},
                             {"inputs", shape.inputs},
                             {"weight_bytes", static_cast<double>(weight_bytes(layout, shape))},
                             {"seconds", seconds},
                             {"operations_per_second", rate},
                             {"operation_ceiling", ceiling(layout)},
                             {"operation_ceilings", ceilings_.operations},
                             {"read_ceiling", ceilings_.read}};
    if (rung >= 0) record["rung"] = rung;
    records.push_back(std::move(record));
    return rate;
  }

  const Kernels& k_ = kernels();
  ThreadPool one_{1};
  Ceilings ceilings_ = measure_ceilings(k_, one_);
};

}  // namespace

nlohmann::json bench_operators() {
  OperatorBench bench;
  bench.run();
  return std::move(bench.records);
}

}  // namespace stagecraft
