// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Both directions of `hotline_feistel`, one behind the other, for the bench.
module hotline_feistel_pair #(
  parameter int unsigned Lanes = 2,
  parameter int unsigned UserBits = 4
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   valid_i,
  input  logic [Lanes-1:0][31:0] data_i,
  input  logic [UserBits-1:0]    user_i,

  output logic                   permuted_valid_o,
  output logic [Lanes-1:0][31:0] permuted_data_o,
  output logic [UserBits-1:0]    permuted_user_o,

  output logic                   restored_valid_o,
  output logic [Lanes-1:0][31:0] restored_data_o,
  output logic [UserBits-1:0]    restored_user_o
);

  hotline_feistel #(
    .Lanes   (Lanes),
    .UserBits(UserBits)
  ) u_permute (
    .clk_i,
    .rst_ni,
    .valid_i,
    .data_i,
    .user_i,
    .valid_o(permuted_valid_o),
    .data_o (permuted_data_o),
    .user_o (permuted_user_o)
  );

  hotline_feistel #(
    .Lanes   (Lanes),
    .UserBits(UserBits),
    .Inverse (1'b1)
  ) u_restore (
    .clk_i,
    .rst_ni,
    .valid_i(permuted_valid_o),
    .data_i (permuted_data_o),
    .user_i (permuted_user_o),
    .valid_o(restored_valid_o),
    .data_o (restored_data_o),
    .user_o (restored_user_o)
  );

endmodule
