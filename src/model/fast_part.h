#pragma once

#include <algorithm>
#include <initializer_list>

#include "model/fast_workspace.h"
#include "model/packed_model.h"

namespace stagecraft {

// Part `part` of `parts` of n things.
struct Share {
  std::size_t begin, end;
  Share(std::size_t n, std::size_t part, std::size_t parts)
      : begin(n * part / parts), end(n * (part + 1) / parts) {}
};

// Rows ready to be multiplied, wherever they lie.
struct Rows {
  const PreparedRows* prepared = nullptr;
  MatrixView<const float> f32;
};

// Rows [begin, end) that one panel is multiplied with, some at a time.
struct RowRange {
  std::size_t begin = 0, end = 0;
};

// Where a kernel puts its 32 outputs of each row, or adds them.
struct TileOut {
  float* data;
  std::size_t stride = kPanelOutputs;
  bool add = false;
};

// out[r] = weight * row r + bias, or += that.
struct Product {
  const PackedLinear* linear;
  MatrixView<float> out;  // [rows, outputs]
  bool add = false;
};

// What one of the threads that go through a pass side by side has to do with products: rows get
// ready for the kernels, panels are multiplied with them, each thread its share. `part` of `parts`.
class FastPart {
 public:
  FastPart(const Config& config, FastWorkspace& w, std::size_t part, std::size_t parts)
      : config_(config),
        w_(w),
        part_(part),
        parts_(parts),
        scratch_(w.scratch[part]),
        k_(w.kernels) {}

  FastWorkspace::Scratch& scratch() const { return scratch_; }

  bool is_first() const { return part_ == 0; }
  // Of n things, those that are this thread's.
  Share share(std::size_t n) const { return {n, part_, parts_}; }

  // All threads are here. Between two barriers no thread writes what another reads.
  void barrier() const {
    if (parts_ > 1) w_.threads.barrier();
  }

  // Norms rows, where a norm is given, and puts them into the forms that the matrices' kernels ask
  // for.
  Rows prepare(MatrixView<const float> x, const std::vector<float>* norm,
               std::initializer_list<const PackedLinear*> linears) const {
    bool forms[3] = {};
    for (const PackedLinear* linear : linears) {
      forms[static_cast<int>(row_form(linear->weight))] = true;
    }
    const std::size_t width = x.cols();
    const bool together = x.rows() > kFewRows && parts_ > 1;
    PreparedRows& p = together ? w_.prepared : scratch_.prepared;
    const Share mine = together ? share(x.rows()) : Share(x.rows(), 0, 1);
    const MatrixView<float> normed(p.f32.data(), x.rows(), width);
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      const float* row = x.row(r).data();
      if (norm != nullptr) {
        k_.rms_norm(row, norm->data(), width, config_.norm_eps, normed.row(r).data());
        row = normed.row(r).data();
      }
      for (const RowForm form : {RowForm::BF16, RowForm::Q8}) {
        if (forms[static_cast<int>(form)]) round_row(row, form, r, width, p);
      }
    }
    if (together) barrier();
    return {&p, norm != nullptr ? MatrixView<const float>(normed) : x};
  }

  // Makes row r of p, which is `width` wide, in one of the forms that are rounded.
  void round_row(const float* row, RowForm form, std::size_t r, std::size_t width,
                 PreparedRows& p) const {
    if (form == RowForm::BF16) k_.to_bf16(row, width, &p.bf16.data()[r * width]);
    if (form != RowForm::Q8) return;
    const std::size_t block = r * (width / kQuantBlock);
    k_.to_q8(row, width, &p.q8.data()[r * width], &p.scales.data()[block], &p.sums.data()[block]);
  }

  // One panel of a matrix times rows [first, first + n), n at most the kernel's most. All of the
  // rows that the panel is for fetch its neighbour on the way, these their part of it.
  void tile(const PanelMatrix& m, std::size_t panel, const Rows& x, std::size_t first,
            std::size_t n, const TileOut& out, RowRange all = {}) const {
    const std::size_t blocks = m.inputs / kQuantBlock;
    TileArgs args{.panel = m.panel(panel),
                  .inputs = m.inputs,
                  .row_stride = m.inputs,
                  .block_stride = blocks,
                  .out = out.data,
                  .out_stride = out.stride,
                  .add = out.add,
                  .ahead = m.panel(panel)};
    if (const std::size_t rows = all.end - all.begin; rows > n) {
      const std::size_t bytes = panel_bytes(m.form, m.inputs);
      args.ahead = m.panel(panel + 1) + bytes * (first - all.begin) / rows;
      args.ahead_step = bytes * n / rows / m.inputs + 1;
    }
    switch (row_form(m)) {
      case RowForm::F32:
        args.rows = x.f32.row(first).data();
        args.row_stride = x.f32.stride();
        break;
      case RowForm::BF16:
        args.rows = &x.prepared->bf16.data()[first * m.inputs];
        break;
      case RowForm::Q8:
        args.rows = &x.prepared->q8.data()[first * m.inputs];
        args.scales = &x.prepared->scales.data()[first * blocks];
        args.sums = &x.prepared->sums.data()[first * blocks];
        break;
    }
    k_.tile[static_cast<std::size_t>(m.form)][n - 1](args);
  }

  RowForm row_form(const PanelMatrix& m) const {
    return k_.row_form[static_cast<std::size_t>(m.form)];
  }
  std::size_t max_rows(const PanelMatrix& m) const {
    return k_.max_rows[static_cast<std::size_t>(m.form)];
  }

  // This thread's share of panels times rows, by tiles, so that no thread has a panel more than
  // another where there are many rows: each(panel, some of the rows).
  template <class Each>
  void share_tiles(std::size_t panels, RowRange rows, Each each) const {
    const std::size_t tiles = (rows.end - rows.begin + kTileRows - 1) / kTileRows;
    const Share mine = share(panels * tiles);
    for (std::size_t i = mine.begin; i < mine.end;) {
      const std::size_t first = i % tiles;
      const std::size_t last = std::min(tiles, first + mine.end - i);
      each(i / tiles, RowRange{rows.begin + first * kTileRows,
                               std::min(rows.end, rows.begin + last * kTileRows)});
      i += last - first;
    }
  }

  // This thread's share of several products of the same rows.
  void multiply(const Rows& x, RowRange rows, std::initializer_list<Product> products) const {
    std::size_t panels = 0;
    for (const Product& one : products) panels += one.linear->weight.panel_count();
    share_tiles(panels, rows, [&](std::size_t panel, RowRange some) {
      for (const Product& one : products) {
        const std::size_t count = one.linear->weight.panel_count();
        if (panel < count) return multiply_panel(x, one, panel, some);
        panel -= count;
      }
    });
  }

  void multiply_panel(const Rows& x, const Product& product, std::size_t panel,
                      RowRange rows) const {
    const auto& [linear, out, add] = product;
    const PanelMatrix& m = linear->weight;
    const std::size_t output = panel * kPanelOutputs;
    const std::size_t n_outputs = std::min(kPanelOutputs, m.outputs - output);
    const bool direct = n_outputs == kPanelOutputs && linear->bias.empty();
    for (std::size_t r = rows.begin; r < rows.end; r += max_rows(m)) {
      const std::size_t n = std::min(max_rows(m), rows.end - r);
      if (direct) {
        tile(m, panel, x, r, n, {&out(r, output), out.stride(), add}, rows);
        continue;
      }
      float* values = scratch_.tile.data();
      tile(m, panel, x, r, n, {values}, rows);
      for (std::size_t i = 0; i < n; ++i, values += kPanelOutputs) {
        if (!linear->bias.empty()) k_.add(linear->bias.data() + output, n_outputs, values);
        float* to = &out(r + i, output);
        if (add) {
          k_.add(values, n_outputs, to);
        } else {
          std::copy_n(values, n_outputs, to);
        }
      }
    }
  }

 private:
  const Config& config_;
  FastWorkspace& w_;
  std::size_t part_, parts_;
  FastWorkspace::Scratch& scratch_;
  const Kernels& k_;
};

}  // namespace stagecraft
