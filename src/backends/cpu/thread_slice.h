#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "backends/cpu/cpu_workspace.h"
#include "backends/cpu/packed_weights.h"

namespace stagecraft {

// [begin, end) of rows, panels, tiles or tasks.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// Rows that are ready to be multiplied: rounded, or as floats.
struct Rows {
  const RoundedRows* prepared = nullptr;
  MatrixView<const float> f32;
};

// Where a kernel writes its 32 outputs per row, or adds them.
struct TileOut {
  float* data;
  std::size_t stride = kPanelOutputs;
  bool add = false;
};

// The number formats of activations that the kernels of some matrices need, by ActivationType.
using ActivationTypes = std::array<bool, kActivationTypes>;
constexpr ActivationType kRoundedTypes[] = {ActivationType::BF16, ActivationType::Q8,
                                            ActivationType::Q8_K};
constexpr bool has(const ActivationTypes& types, ActivationType type) {
  return types[static_cast<std::size_t>(type)];
}
constexpr bool is_rounded(const ActivationTypes& types) {
  return std::ranges::any_of(kRoundedTypes, [&](ActivationType type) { return has(types, type); });
}

// out[r] = f(weight * row r + bias), or out[r] += that.
struct Product {
  const PanelMatrix* weight = nullptr;
  const float* bias = nullptr;  // [outputs], or nullptr
  MatrixView<float> out = {};   // [rows, outputs]
  bool add = false;
  // f of the sum and the bias (Kernels::activate), or nullptr.
  void (*activate)(const float* x, const float* up, std::size_t n, float* out) = nullptr;
};

// The work of thread `thread` of `n_threads` in the products of a pass: it prepares rows for the
// kernels and multiplies its slice of the panels.
class ThreadSlice {
 public:
  ThreadSlice(CpuWorkspace& w, std::size_t thread, std::size_t n_threads)
      : w_(w), thread_(thread), n_threads_(n_threads), scratch_(w.scratch[thread]), k_(w.kernels) {}

  CpuWorkspace::Scratch& scratch() const { return scratch_; }

  bool is_first() const { return thread_ == 0; }
  // This thread's slice of n things: all slices are equal, or differ by one.
  Range of(std::size_t n) const {
    return {n * thread_ / n_threads_, n * (thread_ + 1) / n_threads_};
  }

  // The columns of this thread's slice of the panels of a matrix with `outputs` outputs.
  Range columns(std::size_t outputs) const {
    const Range panels = of(panels_of(outputs));
    return {panels.begin * kPanelOutputs, std::min(outputs, panels.end * kPanelOutputs)};
  }

  // Waits until all threads are here. Between two barriers no thread writes what another reads.
  void barrier() const {
    if (n_threads_ > 1) w_.threads.barrier();
  }

  // Applies the norm, if there is one, and converts the rows to these number formats. With more
  // than kFewRows rows, all threads must call it: each prepares its slice, and they wait for each
  // other. order: row r of the result is row order[r] of x; empty: all rows.
  Rows prepare(MatrixView<const float> x, const PackedNorm& norm, ActivationTypes types,
               std::span<const std::uint32_t> order = {}) const;

  // Rounds a row of `width` numbers to one of the rounded formats, and writes it as row r of p.
  void round_row(const float* row, ActivationType type, std::size_t r, std::size_t width,
                 RoundedRows& p) const {
    round_part(row, type, r, {0, width}, width, p);
  }
  // The same for only these columns of the row; their numbers are at x. Q8 and Q8_K: a whole
  // number of blocks.
  void round_part(const float* x, ActivationType type, std::size_t r, Range columns,
                  std::size_t width, RoundedRows& p) const;

  // Computes this thread's slice of several products of the same rows.
  void multiply(const Rows& x, Range rows, std::span<const Product> products) const;

  // Multiplies panels of a matrix with rows [first, first + n), n <= max_rows(m). The outputs of
  // neighbouring panels lie side by side. all: the rows that are multiplied with each panel. Their
  // tiles together prefetch the next panel; each tile prefetches its part. next: the panels of a
  // matrix of the same size, which the tiles prefetch instead.
  void tiles(const PanelMatrix& m, Range panels, const Rows& x, std::size_t first, std::size_t n,
             const TileOut& out, Range all = {}, const std::byte* next = nullptr) const;
  void tile(const PanelMatrix& m, std::size_t panel, const Rows& x, std::size_t first,
            std::size_t n, const TileOut& out, Range all = {}) const {
    tiles(m, {panel, panel + 1}, x, first, n, out, all);
  }
  // Multiplies the same panel of two matrices of the same size.
  void tile_of_each(const PanelMatrix& a, const PanelMatrix& b, std::size_t panel, const Rows& x,
                    std::size_t first, std::size_t n, float* out_a, float* out_b, Range all) const;

  ActivationType activation_type(const PanelMatrix& m) const {
    return k_.matmul(m.layout).activation_type;
  }
  // Adds the number format in which the kernel of this matrix needs its rows.
  void add_type(const PanelMatrix& m, ActivationTypes& types) const {
    types[static_cast<std::size_t>(activation_type(m))] = true;
  }
  // How many rows slice_tiles should keep together for this matrix: as many as fill half of an L2
  // cache of 2 MB. If several matrices are multiplied with the same rows, the first one decides.
  std::size_t rows_together(const PanelMatrix& m) const;
  std::size_t max_rows(const PanelMatrix& m) const { return k_.matmul(m.layout).max_rows; }

  // Calls each(panels, rows) for this thread's slice of panels times rows: one panel and some of
  // the rows or, if the rows are one tile, several panels. If there are many rows, each group of
  // threads has some of them: then a thread finds in its own cache what it wrote in the step
  // before. The threads of a group share tiles, not panels, so that their slices differ by less
  // than a panel. together: a group takes about so many of its rows at a time, and multiplies them
  // with all panels. So these rows stay in the L2 cache.
  template <class Each>
  void slice_tiles(std::size_t panels, Range rows, std::size_t together, Each each) const {
    const std::size_t groups = group_count(rows.size()), members = n_threads_ / groups;
    const std::size_t group = thread_ / members, member = thread_ % members;
    const Range some{rows.begin + first_row(rows.size(), group, groups),
                     rows.begin + first_row(rows.size(), group + 1, groups)};
    const std::size_t parts = std::max<std::size_t>(1, (some.size() + together / 2) / together);
    for (std::size_t i = 0; i < parts; ++i) {
      const Range part{some.begin + first_row(some.size(), i, parts),
                       some.begin + first_row(some.size(), i + 1, parts)};
      const std::size_t tiles = panels * tile_count(part);
      for_tiles({tiles * member / members, tiles * (member + 1) / members}, part, each);
    }
  }
  std::size_t tile_count(Range rows) const {
    return (rows.size() + k_.min_rows_per_thread - 1) / k_.min_rows_per_thread;
  }
  // The same for any range of tiles. Tiles are numbered panel by panel.
  template <class Each>
  void for_tiles(Range mine, Range rows, Each each) const {
    const std::size_t tiles = tile_count(rows);
    if (tiles == 1) return each(mine, rows);
    for (std::size_t i = mine.begin; i < mine.end;) {
      const std::size_t panel = i / tiles;
      const std::size_t first = i % tiles;
      const std::size_t last = std::min(tiles, first + mine.end - i);
      each(Range{panel, panel + 1},
           Range{rows.begin + first * k_.min_rows_per_thread,
                 std::min(rows.end, rows.begin + last * k_.min_rows_per_thread)});
      i += last - first;
    }
  }

 private:
  // Everything but the panel, and what is prefetched.
  TileArgs tile_args(const PanelMatrix& m, const Rows& x, std::size_t first,
                     const TileOut& out) const;
  // Whether n of these rows are multiplied with two panels at a time (Kernels::two_panels).
  bool two_at_a_time(std::size_t n, Range all) const {
    return k_.two_panels && n == 1 && all.size() == 1;
  }
  // Multiplies one row with two panels. args: those of the first one.
  void multiply_two(TileArgs args, const PanelMatrix& m, std::size_t panel,
                    const PanelMatrix& second, std::size_t second_panel, float* second_out) const;
  // The number of groups of threads. Each group reads all weights, so it must have enough rows that
  // this costs little.
  std::size_t group_count(std::size_t rows) const {
    constexpr std::size_t kManyRows = 128;
    std::size_t groups = n_threads_;
    while (n_threads_ % groups != 0 || (groups > 1 && rows < groups * kManyRows)) --groups;
    return groups;
  }
  // The first row of a group: a multiple of 16, the number of rows of an AMX tile.
  static std::size_t first_row(std::size_t rows, std::size_t group, std::size_t groups) {
    constexpr std::size_t kTogether = 16;
    if (group == groups) return rows;
    return (rows * group / groups + kTogether / 2) / kTogether * kTogether;
  }
  void multiply_panels(const Rows& x, const Product& product, Range panels, Range rows) const;
  // Writes through scratch memory: for a bias, an activation function, or a panel that is not full.
  void multiply_panel(const Rows& x, const Product& product, std::size_t panel, Range rows) const;

  CpuWorkspace& w_;
  std::size_t thread_, n_threads_;
  CpuWorkspace::Scratch& scratch_;
  const Kernels& k_;
};

}  // namespace stagecraft
