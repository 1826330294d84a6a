// Weights of conv_q8 as a list of rows: see row_start in the schema.
#ifndef EDGEKIT_KERNELS_GEMM_WEIGHT_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_WEIGHT_ROWS_H_

#include <cstdint>

#include "core/status.h"
#include "kernels/gemm/conv_q8_source.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/op.h"

namespace edgekit {

// Null where there is no list.
struct WeightRows {
  const int32_t* starts;  // [segments * panels + 1]
  const int32_t* groups;  // the depth group of each
  const int32_t* orders;  // of each row of the form beyond kRowForms; null: there is no such form
  int64_t segments;       // of one panel: all forms for each of its parts

  int forms() const { return forms_of(orders); }
  int64_t parts() const { return segments / forms(); }  // of one panel
  int64_t count(int64_t panel) const { return starts[segments * (panel + 1)] - starts[segments * panel]; }
};

WeightRows weight_rows_of(const OpArgs& args, int64_t panels);

// The tap, ky * kernel_w + kx, that all rows of a part are of, in all panels; -1: of several. Whole depth groups a tap.
int64_t tap_of_part(const WeightRows& rows, const ConvQ8Source& source, int64_t panels, int64_t part);

// Checks the operands of a list, for panels of all groups.
Status check_weight_rows(const OpArgs& args, const ConvQ8Source& source, int64_t panels);

// Finds where the orders of a panel start; quick where panels are asked for one behind the other.
class PanelOrders {
 public:
  explicit PanelOrders(const WeightRows& rows) : rows_(rows), at_(rows.orders) {}

  const int32_t* of(int64_t panel);

 private:
  const WeightRows& rows_;
  const int32_t* at_;
  int64_t panel_ = 0;
};

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_WEIGHT_ROWS_H_
