// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Permutes 32-bit words by the four-round Feistel network of the EAL, or undoes it.
///
/// A beat is a vector of `Lanes` words and `UserBits` bits that travel along. `Inverse` = 1 builds
/// the inverse: the same network with swapped halves and the round keys in reverse order.
///
///          +-- round r ----------------------------------+
///   left --|----------------> reg -------> reg --> xor --|--> right     one multiplier per lane
///   right -|--> ^constant --> reg --> * -> reg ---> ^    |              and round; its input and
///      +---|----------------> reg -------> reg ----------|--> left      output are registers (DSP)
///          +---------------------------------------------+
///
///   cycle            0      1      ...  9      10
///   data_i, valid_i  A      B
///   data_o, valid_o                     P(A)   P(B)
///
/// Throughput  1 beat per cycle, always.
/// Latency     2 * 4 + 1 = 9 cycles.
/// Stalls      None: there is no backpressure. The user keeps room for what is inside.
/// Errors      None; any word is legal.
/// Reset       Drops what is inside.
module hotline_feistel import hotline_pkg::*; #(
  /// Words of a beat.
  parameter int unsigned Lanes = 1,
  /// Bits that travel along with a beat.
  parameter int unsigned UserBits = 1,
  /// 0: permute. 1: undo it.
  parameter bit Inverse = 1'b0
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   valid_i,
  input  logic [Lanes-1:0][31:0] data_i,
  input  logic [UserBits-1:0]    user_i,

  output logic                   valid_o,
  output logic [Lanes-1:0][31:0] data_o,
  output logic [UserBits-1:0]    user_o
);

  if (Lanes < 1 || UserBits < 1) begin : gen_bad_size
    $fatal(1, "%m: Lanes and UserBits must be at least 1");
  end

  localparam int unsigned Rounds = FeistelRounds;

  typedef logic [Lanes-1:0][15:0] halves_t;

  // Element r enters round r; element Rounds leaves the last one.
  logic    [Rounds:0]               valid;
  halves_t [Rounds:0]               left;
  halves_t [Rounds:0]               right;
  logic    [Rounds:0][UserBits-1:0] user;

  assign valid[0] = valid_i;
  assign user[0]  = user_i;
  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_in
    assign left[0][l]  = Inverse ? data_i[l][15:0] : data_i[l][31:16];
    assign right[0][l] = Inverse ? data_i[l][31:16] : data_i[l][15:0];
  end

  for (genvar r = 0; r < int'(Rounds); r++) begin : gen_round
    localparam int unsigned Key = Inverse ? Rounds - 1 - r : r;

    logic                valid1_q, valid2_q;
    logic [UserBits-1:0] user1_q, user2_q;
    halves_t             left1_q, left2_q, right1_q, right2_q, operand1_q, mixed2_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        valid1_q <= 1'b0;
        valid2_q <= 1'b0;
      end else begin
        valid1_q <= valid[r];
        valid2_q <= valid1_q;
      end
    end

    // Not reset: qualified by the valid bits.
    always_ff @(posedge clk_i) begin
      user1_q  <= user[r];
      left1_q  <= left[r];
      right1_q <= right[r];
      user2_q  <= user1_q;
      left2_q  <= left1_q;
      right2_q <= right1_q;
      for (int unsigned l = 0; l < Lanes; l++) begin
        operand1_q[l] <= right[r][l] ^ FeistelConstant[Key];
        // The constant is already in the operand.
        mixed2_q[l]   <= feistel_round(operand1_q[l], FeistelMultiplier[Key], 16'd0);
      end
    end

    assign valid[r+1] = valid2_q;
    assign user[r+1]  = user2_q;
    assign left[r+1]  = right2_q;
    assign right[r+1] = left2_q ^ mixed2_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
    end else begin
      valid_o <= valid[Rounds];
    end
  end

  always_ff @(posedge clk_i) begin
    user_o <= user[Rounds];
    for (int unsigned l = 0; l < Lanes; l++) begin
      data_o[l] <= Inverse ? {right[Rounds][l], left[Rounds][l]} :
                             {left[Rounds][l], right[Rounds][l]};
    end
  end

endmodule
