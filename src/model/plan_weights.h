#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/plan.h"

namespace stagecraft {

// The tensors of a checkpoint that a plan needs, one per weight, in the order of plan.weights. They
// live as long as the checkpoint. Throws Error naming the tensor if one is missing, has another
// shape or a dtype other than F32, F16, BF16 and the quantised types, or if the plan does not use a
// tensor of the checkpoint.
std::vector<const StoredTensor*> find_weights(const Plan& plan, const Checkpoint& checkpoint);

// The shape of the tensor that holds a weight.
std::vector<std::size_t> stored_shape(const Weight& weight);

// The part of the stored tensor that is this weight: all of it, or some of its rows. If the weight
// is not contiguous (Storage::is_contiguous), only the shape is that of the weight; the bytes are
// all stored bytes, or those of its slice, and weight_rows reads them.
StoredTensor stored_weight(const Weight& weight, const StoredTensor& stored);

// Rows [first, first + count) of a weight in the number format of the file, in the order in which
// they are used.
//   stored  what stored_weight returned
//   memory  holds the copied bytes of a weight that is not contiguous; must outlive the result
StoredTensor weight_rows(const Weight& weight, const StoredTensor& stored, std::size_t first,
                         std::size_t count, std::vector<std::byte>& memory);

// A stored norm or bias as f32, with Weight::plus added.
std::vector<float> read_vector(const Weight& weight, const StoredTensor& stored);

}  // namespace stagecraft
