// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of the AXI4-Lite front of `hotline_csr`, for any inputs from the kernel: every request is
/// answered once, within two cycles of a willing master, and not before it came; answers stay as they
/// are while they wait; at most two wait; a register (IDS_LO stands for those of its kind) reads as the
/// bytes last written to it.
module hotline_csr_props
  import hotline_csr_pkg::*;
(
  input logic        clk,
  input logic        rst_n,
  input logic        awvalid_i,
  input logic [11:0] awaddr_i,
  input logic        wvalid_i,
  input logic [31:0] wdata_i,
  input logic [3:0]  wstrb_i,
  input logic        bready_i,
  input logic        arvalid_i,
  input logic [11:0] araddr_i,
  input logic        rready_i,
  input hotline_csr__in_t hwif_i
);

  logic        awready;
  logic        wready;
  logic        bvalid;
  logic [1:0]  bresp;
  logic        arready;
  logic        rvalid;
  logic [31:0] rdata;
  logic [1:0]  rresp;
  hotline_csr__out_t hwif_out;

  hotline_csr dut (
    .clk, .rst_n,
    .s_axil_awready(awready), .s_axil_awvalid(awvalid_i), .s_axil_awaddr(awaddr_i),
    .s_axil_awprot('0),
    .s_axil_wready(wready), .s_axil_wvalid(wvalid_i), .s_axil_wdata(wdata_i),
    .s_axil_wstrb(wstrb_i),
    .s_axil_bready(bready_i), .s_axil_bvalid(bvalid), .s_axil_bresp(bresp),
    .s_axil_arready(arready), .s_axil_arvalid(arvalid_i), .s_axil_araddr(araddr_i),
    .s_axil_arprot('0),
    .s_axil_rready(rready_i), .s_axil_rvalid(rvalid), .s_axil_rdata(rdata), .s_axil_rresp(rresp),
    .hwif_in(hwif_i), .hwif_out
  );

  logic        started_q = 1'b0;
  logic        b_held_q;
  logic [1:0]  b_q;
  logic        r_held_q;
  logic [33:0] r_q;
  // Requests accepted and not answered.
  logic [7:0]  reads_q;
  logic [7:0]  addresses_q;
  logic [7:0]  data_q;
  // Cycles since an unanswered request was complete, with a master that takes every answer.
  logic [7:0]  waited_q;

  logic ar_in;
  logic aw_in;
  logic w_in;
  logic r_out;
  logic b_out;
  assign ar_in = arvalid_i && arready;
  assign aw_in = awvalid_i && awready;
  assign w_in  = wvalid_i && wready;
  assign r_out = rvalid && rready_i;
  assign b_out = bvalid && bready_i;

  logic owed;
  assign owed = reads_q != '0 || (addresses_q != '0 && data_q != '0);

  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    b_held_q  <= rst_n && bvalid && !bready_i;
    b_q       <= bresp;
    r_held_q  <= rst_n && rvalid && !rready_i;
    r_q       <= {rdata, rresp};
    if (!rst_n) begin
      reads_q     <= '0;
      addresses_q <= '0;
      data_q      <= '0;
      waited_q    <= '0;
    end else begin
      reads_q     <= reads_q + 8'(ar_in) - 8'(r_out);
      addresses_q <= addresses_q + 8'(aw_in) - 8'(b_out);
      data_q      <= data_q + 8'(w_in) - 8'(b_out);
      waited_q    <= owed && !r_out && !b_out && rready_i && bready_i ? waited_q + 1'b1 : '0;
    end
  end

  // The register as its writes leave it.
  localparam logic [11:0] Register = 12'h020;
  logic [31:0] shadow_q;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      shadow_q <= '0;
    end else if (dut.axil_aw_accept && dut.axil_awaddr[11:2] == Register[11:2]) begin
      for (int unsigned i = 0; i < 4; i++) begin
        if (dut.axil_wstrb[i]) shadow_q[8*i+:8] <= dut.axil_wdata[8*i+:8];
      end
    end
  end

  // Answers in the buffer, by kind.
  logic [1:0] buffered;
  logic [1:0] buffered_writes;
  assign buffered = dut.axil_resp_wptr - dut.axil_resp_rptr;
  always_comb begin
    buffered_writes = '0;
    for (int unsigned i = 0; i < 2; i++) begin
      if (2'(i) < buffered && dut.axil_resp_buffer_is_wr[1'(dut.axil_resp_rptr + 2'(i))]) begin
        buffered_writes = buffered_writes + 1'b1;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!started_q) begin
      assume (!rst_n);
    end else begin
      // Promises.
      if (b_held_q) a_b_stable: assert (bvalid && bresp == b_q);
      if (r_held_q) a_r_stable: assert (rvalid && {rdata, rresp} == r_q);
      if (rvalid) a_r_owed: assert (reads_q != '0);
      if (bvalid) a_b_owed: assert (addresses_q != '0 && data_q != '0);
      a_two:  assert (buffered <= 2);
      a_soon: assert (waited_q < 2);
      if (dut.axil_ar_accept && dut.axil_araddr[11:2] == Register[11:2]) begin
        a_read: assert (dut.cpuif_rd_ack && dut.cpuif_rd_data == shadow_q && !dut.cpuif_rd_err);
      end

      // What makes them inductive.
      i_register:  assert (hwif_out.IDS_LO.value.value == shadow_q);
      i_flight:    assert (dut.axil_n_in_flight == buffered);
      i_reads:     assert (reads_q == 8'(dut.axil_arvalid) + 8'(buffered) - 8'(buffered_writes));
      i_addresses: assert (addresses_q == 8'(dut.axil_awvalid) + 8'(buffered_writes));
      i_data:      assert (data_q == 8'(dut.axil_wvalid) + 8'(buffered_writes));
      if (waited_q != '0) i_waited: assert (buffered != '0);

      c_read:  cover (r_held_q && rvalid && rready_i);
      c_write: cover (b_held_q && bvalid && bready_i);
      c_both:  cover (reads_q == 2 && addresses_q == 2 && data_q == 2);
      c_full:  cover (buffered == 2);
    end
  end

endmodule
