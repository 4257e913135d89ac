"""The experiments of Rodrigues, Pereira and Ribeiro 2013, tables 2 to 6."""
