// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_axi_mux`: data leave in the order of the addresses, from the source whose address
/// it was, and what is offered stays as it is.
///
/// Any one granted address is followed: `pick_i` chooses it.
module hotline_axi_mux_props #(
  parameter int unsigned Ahead = 3
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        core_aw_valid_i,
  input logic [63:0] core_aw_addr_i,
  input logic [7:0]  core_aw_len_i,
  input logic        core_w_valid_i,
  input logic [63:0] core_w_data_i,
  input logic [7:0]  core_w_strb_i,
  input logic        core_w_last_i,
  input logic        core_b_ready_i,
  input logic        rec_aw_valid_i,
  input logic [63:0] rec_aw_addr_i,
  input logic [7:0]  rec_aw_len_i,
  input logic        rec_w_valid_i,
  input logic [63:0] rec_w_data_i,
  input logic [7:0]  rec_w_strb_i,
  input logic        rec_w_last_i,
  input logic        rec_b_ready_i,
  input logic        m_aw_ready_i,
  input logic        m_w_ready_i,
  input logic        m_b_valid_i,
  input logic        m_b_user_i,
  input logic        pick_i
);

  localparam int unsigned CountWidth = $clog2(Ahead + 1);

  logic        core_aw_ready;
  logic        core_w_ready;
  logic        core_b_valid;
  logic        rec_aw_ready;
  logic        rec_w_ready;
  logic        rec_b_valid;
  logic        m_aw_valid;
  logic [63:0] m_aw_addr;
  logic [7:0]  m_aw_len;
  logic        m_aw_user;
  logic        m_w_valid;
  logic [63:0] m_w_data;
  logic [7:0]  m_w_strb;
  logic        m_w_last;
  logic        m_b_ready;

  hotline_axi_mux #(
    .BusBits(64), .Ahead(Ahead)
  ) dut (
    .clk_i, .rst_ni,
    .core_aw_valid_i, .core_aw_ready_o(core_aw_ready), .core_aw_addr_i, .core_aw_len_i,
    .core_w_valid_i, .core_w_ready_o(core_w_ready), .core_w_data_i, .core_w_strb_i, .core_w_last_i,
    .core_b_valid_o(core_b_valid), .core_b_ready_i,
    .rec_aw_valid_i, .rec_aw_ready_o(rec_aw_ready), .rec_aw_addr_i, .rec_aw_len_i,
    .rec_w_valid_i, .rec_w_ready_o(rec_w_ready), .rec_w_data_i, .rec_w_strb_i, .rec_w_last_i,
    .rec_b_valid_o(rec_b_valid), .rec_b_ready_i,
    .m_aw_valid_o(m_aw_valid), .m_aw_ready_i, .m_aw_addr_o(m_aw_addr), .m_aw_len_o(m_aw_len),
    .m_aw_user_o(m_aw_user),
    .m_w_valid_o(m_w_valid), .m_w_ready_i, .m_w_data_o(m_w_data), .m_w_strb_o(m_w_strb),
    .m_w_last_o(m_w_last),
    .m_b_valid_i, .m_b_ready_o(m_b_ready), .m_b_user_i
  );

  logic started_q = 1'b0;
  // A source keeps what it offers.
  logic        core_aw_held_q;
  logic [71:0] core_aw_q;
  logic        core_w_held_q;
  logic [72:0] core_w_q;
  logic        rec_aw_held_q;
  logic [71:0] rec_aw_q;
  logic        rec_w_held_q;
  logic [72:0] rec_w_q;
  // What the memory saw.
  logic        m_aw_held_q;
  logic [72:0] m_aw_q;
  logic        m_w_held_q;
  logic [72:0] m_w_q;

  always_ff @(posedge clk_i) begin
    started_q      <= 1'b1;
    core_aw_held_q <= rst_ni && core_aw_valid_i && !core_aw_ready;
    core_aw_q      <= {core_aw_addr_i, core_aw_len_i};
    core_w_held_q  <= rst_ni && core_w_valid_i && !core_w_ready;
    core_w_q       <= {core_w_data_i, core_w_strb_i, core_w_last_i};
    rec_aw_held_q  <= rst_ni && rec_aw_valid_i && !rec_aw_ready;
    rec_aw_q       <= {rec_aw_addr_i, rec_aw_len_i};
    rec_w_held_q   <= rst_ni && rec_w_valid_i && !rec_w_ready;
    rec_w_q        <= {rec_w_data_i, rec_w_strb_i, rec_w_last_i};
    m_aw_held_q    <= rst_ni && m_aw_valid && !m_aw_ready_i;
    m_aw_q         <= {m_aw_addr, m_aw_len, m_aw_user};
    m_w_held_q     <= rst_ni && m_w_valid && !m_w_ready_i;
    m_w_q          <= {m_w_data, m_w_strb, m_w_last};
  end

  logic                  aw_transfer;
  logic                  burst_ends;
  logic [CountWidth-1:0] count_q;   // bursts whose address was taken and whose data are not through
  logic                  follow_q;
  logic                  record_q;
  logic [CountWidth-1:0] before_q;

  assign aw_transfer = m_aw_valid && m_aw_ready_i;
  assign burst_ends  = m_w_valid && m_w_ready_i && m_w_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q  <= '0;
      follow_q <= 1'b0;
    end else begin
      count_q <= count_q + CountWidth'(aw_transfer) - CountWidth'(burst_ends);
      if (follow_q && burst_ends) begin
        follow_q <= before_q != '0;
        before_q <= before_q - 1'b1;
      end else if (!follow_q && aw_transfer && pick_i) begin
        follow_q <= 1'b1;
        record_q <= m_aw_user;
        before_q <= count_q - CountWidth'(burst_ends);
      end
    end
  end

  logic [31:0] place;
  logic [31:0] write_place;
  assign place       = 32'(dut.u_order.read_q) + 32'(before_q);
  assign write_place = 32'(dut.u_order.read_q) + 32'(count_q);

  always_ff @(posedge clk_i) begin
    if (core_aw_held_q) assume (core_aw_valid_i && {core_aw_addr_i, core_aw_len_i} == core_aw_q);
    if (rec_aw_held_q)  assume (rec_aw_valid_i && {rec_aw_addr_i, rec_aw_len_i} == rec_aw_q);
    if (core_w_held_q)
      assume (core_w_valid_i && {core_w_data_i, core_w_strb_i, core_w_last_i} == core_w_q);
    if (rec_w_held_q)
      assume (rec_w_valid_i && {rec_w_data_i, rec_w_strb_i, rec_w_last_i} == rec_w_q);
    if (!started_q) begin
      assume (!rst_ni);
    end else if (rst_ni) begin
      // Promises.
      a_one:   assert (!(core_aw_valid_i && core_aw_ready && rec_aw_valid_i && rec_aw_ready));
      a_none:  assert (aw_transfer == ((core_aw_valid_i && core_aw_ready) ||
                                       (rec_aw_valid_i && rec_aw_ready)));
      if (m_aw_valid) begin
        a_aw_payload: assert ({m_aw_addr, m_aw_len} ==
            (m_aw_user ? {rec_aw_addr_i, rec_aw_len_i} : {core_aw_addr_i, core_aw_len_i}));
      end
      if (m_aw_held_q) begin
        a_aw_stable: assert (m_aw_valid && {m_aw_addr, m_aw_len, m_aw_user} == m_aw_q);
      end
      if (m_w_held_q) a_w_stable: assert (m_w_valid && {m_w_data, m_w_strb, m_w_last} == m_w_q);
      a_ahead:    assert (32'(count_q) <= Ahead);
      a_w_behind: assert (!m_w_valid || count_q != '0);
      if (follow_q && before_q == '0) begin
        a_source: assert (m_w_valid == (record_q ? rec_w_valid_i : core_w_valid_i));
        a_other:  assert (!(record_q ? core_w_ready : rec_w_ready));
        if (m_w_valid) begin
          a_w_payload: assert ({m_w_data, m_w_strb, m_w_last} ==
              (record_q ? {rec_w_data_i, rec_w_strb_i, rec_w_last_i}
                        : {core_w_data_i, core_w_strb_i, core_w_last_i}));
        end
      end
      a_b: assert ((rec_b_valid == (m_b_valid_i && m_b_user_i)) &&
                   (core_b_valid == (m_b_valid_i && !m_b_user_i)) &&
                   (m_b_ready == (m_b_user_i ? rec_b_ready_i : core_b_ready_i)));

      c_record: cover (follow_q && record_q && before_q == '0 && burst_ends);
      c_full:   cover (32'(count_q) == Ahead);
      c_core:   cover (follow_q && !record_q && before_q == '0 && burst_ends && count_q > 1);
    end
    if (started_q) begin
      // What makes them inductive.
      i_count: assert (count_q == dut.u_order.count_q);
      i_read:  assert (32'(dut.u_order.read_q) < Ahead);
      i_write: assert (32'(dut.u_order.write_q) ==
                       (write_place >= Ahead ? write_place - Ahead : write_place));
      i_full:  assert (!dut.u_order.ready_q || 32'(count_q) != Ahead);
      if (follow_q) begin
        i_order: assert (before_q < count_q && record_q ==
            dut.u_order.gen_lut.u_ram.mem[place >= Ahead ? place - Ahead : place]);
      end
      if (m_aw_held_q) i_held: assert (dut.held_q && dut.u_order.ready_q &&
                                       dut.held_record_q == m_aw_q[0]);
      if (dut.held_q) begin
        i_held_source: assert (dut.held_record_q ? rec_aw_held_q : core_aw_held_q);
      end
    end
  end

endmodule
